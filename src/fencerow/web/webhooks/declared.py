"""Endpoints that an application declares, and jobs that name one: `deliver_webhooks(app, endpoints=[WebhookTo(...)])`.

What is declared is made when a worker starts, and changed as long as nobody else has changed it. A job names an
endpoint by a tag, so naming costs jobs nothing and the core knows nothing of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

import fencerow.web.webhooks.endpoints as endpoints
from fencerow.core.chore import Chore
from fencerow.core.client.base import ClientBase
from fencerow.core.errors import DeclarationError
from fencerow.core.model.ids import new_id
from fencerow.core.model.labels import TAG_LENGTH_MAX
from fencerow.core.model.seconds import Seconds
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text
from fencerow.web.webhooks.addresses import Allowed, target_of
from fencerow.web.webhooks.endpoint import (
    ATTEMPTS_MAX,
    ENDINGS,
    TIMEOUT_S,
    Ending,
    EndpointOptions,
    EndpointWanted,
    Order,
    check_endpoint_name,
    wanted_of,
)
from fencerow.web.webhooks.pairs import KeyPair
from fencerow.web.webhooks.signing import WebhookSecret

log = logging.getLogger("fencerow.webhooks")

DECLARER: Final = "the application"  # who has changed what nobody else has
TAG: Final = "webhook:"
DONE_S: Final = 3600.0

Came = Literal["made", "changed", "same", "kept"]


def told_to(name: str) -> str:
    """The tag by which a job names an endpoint: `job.using(tags=[told_to("shop")])`. The endpoint must be one that is
    named (`WebhookTo(named=True)`), or choose by this tag.

    Raises:
        InvalidInput: no endpoint that is named can be called so.
    """
    return check_text(f"{TAG}{check_endpoint_name(name)}", "the tag of an endpoint", TAG_LENGTH_MAX)


@dataclass(frozen=True, slots=True)
class WebhookTo:
    """An endpoint as an application declares it; its fields are the options of `Webhooks.add`.

    With `named` it is told of those jobs alone that name it by `told_to(name)`. Its secret is made with it:
    `fencerow webhooks secret NAME` prints it for the receiver.
    """

    name: str
    url: str
    named: bool = False
    asymmetric: bool = False
    events: Sequence[Ending] = ENDINGS
    queues: Sequence[str] | None = None
    jobs: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    with_result: bool = False
    in_order: Order = "none"
    timeout_s: Seconds = TIMEOUT_S
    attempts_max: int = ATTEMPTS_MAX


class DeclareEndpoints(Chore):
    """Makes what is declared, once for each worker."""

    name = "webhook-endpoints"

    def __init__(
        self, client: Callable[[], ClientBase], declared: Sequence[tuple[WebhookTo, EndpointWanted]]
    ) -> None:
        self._client = client
        self._declared = declared
        self._is_done = False

    def for_worker(self) -> Chore:
        return DeclareEndpoints(self._client, self._declared)

    @property
    def is_idle(self) -> bool:
        return self._is_done

    async def tick(self) -> float:
        if not self._is_done:
            for each, wanted in self._declared:
                _tell(each.name, await self._client().arun(declaring(each, wanted)))
            self._is_done = True
        return DONE_S


def declaring(declared: WebhookTo, wanted: EndpointWanted) -> Procedure[Came]:
    """Make or change one endpoint as it is declared. What somebody else has changed is kept, whatever that was.

    Of several workers that start at once one makes it. Its state is never changed: who disables it has the last word.

    Raises:
        MissingExtra: it is to sign with a key pair, and `cryptography` is not installed.
    """
    found = yield from ask(endpoints.read(declared.name))
    if not found:
        signer = KeyPair.new() if declared.asymmetric else WebhookSecret.new()
        adding = endpoints.add(new_id(), declared.name, wanted, signer.text, actor=DECLARER)
        return "made" if (yield from ask(adding)) else "same"
    known = found[0]
    if all(getattr(known, name) == value for name, value in msgspec.structs.asdict(wanted).items()):
        return "same"
    if known.changed_by != DECLARER:
        return "kept"
    changing = endpoints.change(declared.name, known.version, wanted, actor=DECLARER)
    return "changed" if (yield from ask(changing)) else "kept"


def wanted_by(declared: WebhookTo, allow: Allowed) -> EndpointWanted:
    """What the endpoint is to be.

    Raises:
        InvalidInput: something cannot be used. WebhookUrlRefused: webhooks may not go there.
        DeclarationError: it is named, and chooses by other tags as well.
    """
    if declared.named and declared.tags:
        raise DeclarationError(
            f"the endpoint {declared.name!r} is named by jobs, and chooses by tags",
            "a job names it by a tag",
            "leave out one of them",
        )
    check_endpoint_name(declared.name)
    target_of(declared.url, allow)
    given: EndpointOptions = {
        "events": declared.events,
        "queues": declared.queues,
        "jobs": declared.jobs,
        "tags": [told_to(declared.name)] if declared.named else declared.tags,
        "with_result": declared.with_result,
        "in_order": declared.in_order,
        "timeout_s": declared.timeout_s,
        "attempts_max": declared.attempts_max,
    }
    return wanted_of(EndpointWanted(url=declared.url), declared.url, given)


def checked(declared: Sequence[WebhookTo], allow: Allowed) -> list[tuple[WebhookTo, EndpointWanted]]:
    """Declarations with what they want.

    Raises:
        DeclarationError: a name is declared twice. InvalidInput, WebhookUrlRefused: as `wanted_by`.
    """
    names = [each.name for each in declared]
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise DeclarationError(
            f"the endpoint {twice!r} is declared twice", "a name is one endpoint's", "choose another name"
        )
    return [(each, wanted_by(each, allow)) for each in declared]


def _tell(name: str, came: Came) -> None:
    if came == "kept":
        log.warning(
            "the endpoint %s is not as it is declared: somebody has changed it since; `fencerow webhooks change`",
            name,
        )
    elif came != "same":
        log.info("the endpoint %s was %s as it is declared", name, came)
