"""Endpoints of webhooks over HTTP: made, looked at, changed, enabled and disabled, removed; and one that is tried.

They are told of the ends of jobs in all queues, so a token that is good for some queues is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import UNSET

from fencerow.core.errors import InvalidInput, MissingExtra
from fencerow.db.run import ask
from fencerow.errors import EndpointConflict, EndpointNotFound, WebhookUrlRefused
from fencerow.web.gateway.endpoint_shapes import (
    ChangeEndpoint,
    DisableEndpoint,
    EndpointDocument,
    EndpointGiven,
    EndpointList,
    EndpointMade,
    EndpointMoved,
    EndpointQuery,
    EndpointTried,
    NamedEndpoint,
    NewEndpoint,
    RotateSecret,
    SecretRotated,
)
from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import WAIT_S_MAX, Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Told
from fencerow.web.gateway.telling import each, told
from fencerow.web.tokens.scope import Scope
from fencerow.web.webhooks.endpoints import secrets_of
from fencerow.web.webhooks.settings import allowed_of
from fencerow.web.webhooks.tried import tried
from fencerow.web.webhooks.verbs import Webhooks

TRY_S_MAX = WAIT_S_MAX / 2  # of one try, whatever the endpoint's own time is: somebody waits for the answer


def hooks(call: Call) -> Webhooks:
    """The verbs, in the name of the token; refused to one that is good for some queues only.

    Raises:
        NotAllowed: it is such a token.
    """
    everywhere(call, "webhooks")
    return Webhooks(call.acting, allowed_of(call.app.config))


async def list_endpoints(call: Call) -> Answer:
    """All endpoints of webhooks, by name, without their secrets."""
    return Answer(200, EndpointList(endpoints=each(EndpointDocument, await hooks(call).aknown())))


async def show_endpoint(call: Call) -> Answer:
    """One endpoint as it stands, without its secrets."""
    return Answer(200, told(EndpointDocument, await hooks(call).aget(call.query.name)))


async def add_endpoint(call: Call) -> Answer:
    """Make an endpoint: it is told of jobs that are submitted from now on. The answer has its secret, this once.

    Where that answer was lost, the repeat is refused (409): rotate the secret, or send one of your own.
    """
    with _missing_told():
        added = await hooks(call).aadd(**_said(call.body))
    return Answer(201, EndpointMade(endpoint=told(EndpointDocument, added.endpoint), secret=added.secret))


async def change_endpoint(call: Call) -> Answer:
    """Change an endpoint; what is left out stays. It counts for ends from now on."""
    return Answer(200, told(EndpointDocument, await hooks(call).achange(**_said(call.body))))


async def rotate_secret(call: Call) -> Answer:
    """Give an endpoint a new secret, which the answer has, this once. For a while every webhook is signed by both."""
    wanted: RotateSecret = call.body
    secret = None if wanted.secret is UNSET else wanted.secret
    with _missing_told():
        made = await hooks(call).arotate(
            wanted.name, overlap_s=wanted.overlap_s, secret=secret, asymmetric=wanted.asymmetric
        )
    return Answer(200, SecretRotated(name=wanted.name, secret=made))


async def retire_secret(call: Call) -> Answer:
    """Let the secret before the last rotation sign no more. It may be repeated."""
    return _moved(call, await hooks(call).aretire(call.body.name))


async def enable_endpoint(call: Call) -> Answer:
    """Tell an endpoint again of ends, from now on; of one that answered 410 too. It may be repeated."""
    return _moved(call, await hooks(call).aenable(call.body.name))


async def disable_endpoint(call: Call) -> Answer:
    """Tell an endpoint nothing more until it is enabled. Its deliveries under way fail, and can be redelivered."""
    return _moved(call, await hooks(call).adisable(call.body.name, reason=call.body.reason))


async def remove_endpoint(call: Call) -> Answer:
    """Forget an endpoint, its secrets and its deliveries."""
    await hooks(call).aremove(call.body.name)
    return _moved(call, True)


async def try_endpoint(call: Call) -> Answer:
    """Send a webhook of type `webhook.test` from the gateway, signed as all others, and say what was answered.

    It waits half a minute at most, and changes nothing: not the endpoint's failures, nor what stands of deliveries.
    """
    known, name = hooks(call), call.body.name
    found = await known.aget(name)
    secrets = await call.client.arun(ask(secrets_of(name)))
    with _missing_told():
        came = await tried(found, secrets, allowed_of(call.app.config), timeout_s_max=TRY_S_MAX)
    return Answer(200, told(EndpointTried, came, name=name))


@contextmanager
def _missing_told() -> Iterator[None]:
    """A library that a key pair needs: who runs the gateway can install it, and who calls can take a secret."""
    try:
        yield
    except MissingExtra as error:
        raise InvalidInput(error.what, error.why, error.fix) from None


def _said(given: EndpointGiven) -> dict[str, Any]:
    return {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not UNSET}


def _moved(call: Call, changed: bool) -> Answer:
    return Answer(200, EndpointMoved(name=call.body.name, changed=changed))


def _verb(
    name: str, operation: str, answer: Any, body: type[Given], document: type[Told], *refusals: Any
) -> Route:
    return Route(
        "POST", f"/v1/webhooks/endpoints/{name}", operation, answer, Scope.OPERATE, {200: document},
        body=body, refusals=(EndpointNotFound, *refusals), waits=name == "test", tag="webhooks",
    )  # fmt: skip


ROUTES = (
    Route(
        "GET", "/v1/webhooks/endpoints", "listEndpoints", list_endpoints, Scope.READ, {200: EndpointList},
        tag="webhooks",
    ),
    Route(
        "GET", "/v1/webhooks/endpoints/show", "showEndpoint", show_endpoint, Scope.READ, {200: EndpointDocument},
        query=EndpointQuery, refusals=(EndpointNotFound,), tag="webhooks",
    ),
    Route(
        "POST", "/v1/webhooks/endpoints", "addEndpoint", add_endpoint, Scope.OPERATE, {201: EndpointMade},
        body=NewEndpoint, refusals=(EndpointConflict, WebhookUrlRefused), tag="webhooks",
    ),
    _verb(
        "change", "changeEndpoint", change_endpoint, ChangeEndpoint, EndpointDocument,
        EndpointConflict, WebhookUrlRefused,
    ),
    _verb("rotate", "rotateSecret", rotate_secret, RotateSecret, SecretRotated, EndpointConflict),
    _verb("retire", "retireSecret", retire_secret, NamedEndpoint, EndpointMoved),
    _verb("enable", "enableEndpoint", enable_endpoint, NamedEndpoint, EndpointMoved),
    _verb("disable", "disableEndpoint", disable_endpoint, DisableEndpoint, EndpointMoved),
    _verb("remove", "removeEndpoint", remove_endpoint, NamedEndpoint, EndpointMoved),
    _verb("test", "testEndpoint", try_endpoint, NamedEndpoint, EndpointTried),
)  # fmt: skip
