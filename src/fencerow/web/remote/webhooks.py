"""Endpoints of webhooks behind a gateway, and what they were told: what `Webhooks` is beside the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar, Unpack

from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.verb import averb, verb
from fencerow.web.gateway.delivery_shapes import (
    AttemptDocument,
    AttemptList,
    DeliveryDocument,
    DeliveryList,
    Redelivered,
)
from fencerow.web.gateway.endpoint_shapes import (
    EndpointDocument,
    EndpointList,
    EndpointMade,
    EndpointMoved,
    EndpointTried,
    SecretRotated,
)
from fencerow.web.remote.base import RemoteBase
from fencerow.web.remote.exchange import Exchange, Remote, Reply, asking
from fencerow.web.webhooks.endpoint import OVERLAP_S, EndpointOptions
from fencerow.web.webhooks.looking import DeliveryState

T = TypeVar("T")

PAGE = 200
TRY_S = 30.0  # for so long a gateway waits for an endpoint that it tries


class RemoteWebhooks:
    """The endpoints that are told of the ends of jobs. Made by `client.webhooks`; a token for all queues is needed.

    Each method has an async twin with an `a` in front, and raises what the methods of `Webhooks` raise, besides:
        Unavailable, OutcomeUnknown: the gateway did not answer within the client's patience.
        NotAuthenticated, NotAllowed: the token is not good for this.
    """

    def __init__(self, client: RemoteBase) -> None:
        self._client = client

    @verb
    def add(
        self,
        name: str,
        url: str,
        *,
        secret: str | None = None,
        asymmetric: bool = False,
        **given: Unpack[EndpointOptions],
    ) -> Remote[EndpointMade]:
        """Make an endpoint; returns it with its secret, which is told this once. It is sent once: see OutcomeUnknown.

        Raises:
            InvalidInput: something cannot be used. WebhookUrlRefused: webhooks may not go there.
            EndpointConflict: another endpoint has this name.
            OutcomeUnknown: it may be there, with a secret that nobody has: `remove` it, or `rotate` its secret.
        """
        document = {"name": name, "url": url, "secret": secret, "asymmetric": asymmetric}
        said = {key: value for key, value in document.items() if value is not None}
        reply = yield from self._once("", {**said, **_options(given)})
        return reply.decoded(EndpointMade)

    aadd = averb(add)

    @verb
    def known(self) -> Remote[list[EndpointDocument]]:
        """All endpoints by name, without their secrets."""
        return (yield from self._looked("endpoints")).decoded(EndpointList).endpoints

    aknown = averb(known)

    @verb
    def get(self, name: str) -> Remote[EndpointDocument]:
        """The endpoint of this name, without its secrets.

        Raises:
            EndpointNotFound: there is none.
        """
        return (yield from self._looked("endpoints/show", {"name": name})).decoded(EndpointDocument)

    aget = averb(get)

    @verb
    def change(
        self,
        name: str,
        *,
        url: str | None = None,
        version: int | None = None,
        **given: Unpack[EndpointOptions],
    ) -> Remote[EndpointDocument]:
        """Change an endpoint; what is not said stays. With `version`, only if it is in that version still.

        Raises:
            EndpointNotFound: there is none. InvalidInput: something cannot be used.
            EndpointConflict: it was changed meanwhile; perhaps by this very call, if its first answer was lost.
        """
        document = {"name": name, "url": url, "version": version}
        said = {key: value for key, value in document.items() if value is not None}
        reply = yield from self._said("change", {**said, **_options(given)})
        return reply.decoded(EndpointDocument)

    achange = averb(change)

    @verb
    def rotate(
        self,
        name: str,
        *,
        overlap_s: Seconds = OVERLAP_S,
        secret: str | None = None,
        asymmetric: bool | None = None,
    ) -> Remote[str]:
        """Give it a new secret, and return it. For `overlap_s` seconds every webhook is signed by the old one too.

        It is sent once: see OutcomeUnknown.

        Raises:
            EndpointNotFound: there is none.
            EndpointConflict: the secret before the last rotation still signs. `retire` it first, or wait.
            OutcomeUnknown: it may have a new secret that nobody has; the old one still signs for `overlap_s` seconds.
        """
        document: dict[str, Any] = {
            "name": name,
            "overlap_s": in_seconds(overlap_s),
            "asymmetric": asymmetric,
        }
        reply = yield from self._once(
            "/rotate", document if secret is None else {**document, "secret": secret}
        )
        return reply.decoded(SecretRotated).secret

    arotate = averb(rotate)

    @verb
    def retire(self, name: str) -> Remote[bool]:
        """Let the secret before the last rotation sign no more. False: there was none.

        Raises:
            EndpointNotFound: there is none of this name.
        """
        return (yield from self._moved("retire", name))

    aretire = averb(retire)

    @verb
    def enable(self, name: str) -> Remote[bool]:
        """Tell it again of ends, from now on; of one that answered 410 too. False: it was enabled.

        Raises:
            EndpointNotFound: there is none.
        """
        return (yield from self._moved("enable", name))

    aenable = averb(enable)

    @verb
    def disable(self, name: str, *, reason: str | None = None) -> Remote[bool]:
        """Tell it nothing more. Its deliveries under way fail, and can be redelivered later. False: it was not enabled.

        Raises:
            EndpointNotFound: there is none. InvalidInput: the reason cannot be used.
        """
        return (yield from self._moved("disable", name, **({} if reason is None else {"reason": reason})))

    adisable = averb(disable)

    @verb
    def remove(self, name: str) -> Remote[None]:
        """Forget it with its secrets and its deliveries.

        Raises:
            EndpointNotFound: there is none; or it is removed by now, where the first answer was lost.
        """
        yield from self._moved("remove", name)

    aremove = averb(remove)

    @verb
    def test(self, name: str) -> Remote[EndpointTried]:
        """Send one `webhook.test` from the gateway, and say what was answered. What was lost is sent again.

        Raises:
            EndpointNotFound: there is none.
        """
        reply = yield from self._said("test", {"name": name}, wait_s=TRY_S)
        return reply.decoded(EndpointTried)

    atest = averb(test)

    @verb
    def deliveries(
        self,
        endpoint: str | None = None,
        *,
        state: DeliveryState | None = None,
        job: str | None = None,
        webhook_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
    ) -> Remote[list[DeliveryDocument]]:
        """The newest deliveries that fit all that is given; `since` and `until` are aware datetimes.

        Raises:
            InvalidInput: one of them cannot be used.
        """
        meant = _meant(endpoint, job, webhook_id, since, until) | ({} if state is None else {"state": state})
        found: list[DeliveryDocument] = []
        while True:
            query = {**meant, "limit": str(min(PAGE, limit - len(found)))}
            page = (yield from self._looked("deliveries", query)).decoded(DeliveryList)
            found += page.deliveries
            if page.next is None or len(found) >= limit:
                return found
            meant["cursor"] = page.next

    adeliveries = averb(deliveries)

    @verb
    def attempts(self, endpoint: str, event_id: int) -> Remote[list[AttemptDocument]]:
        """Every attempt of one delivery, in their order. Empty where there was none.

        Raises:
            EndpointNotFound: there is no such endpoint.
        """
        query = {"endpoint": endpoint, "event": str(event_id)}
        return (yield from self._looked("attempts", query)).decoded(AttemptList).attempts

    aattempts = averb(attempts)

    @verb
    def redeliver(
        self,
        endpoint: str | None = None,
        *,
        state: DeliveryState | None = "failed",
        job: str | None = None,
        webhook_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        dry_run: bool = False,
    ) -> Remote[int]:
        """Send deliveries once more: one, by its `webhook_id`, or all that fit; returns how many.

        Those that failed, or with `state=None` also those that arrived. With `dry_run` it only counts them. What was
        lost is sent again, and then counts fewer: each is sent once more only when it is over again.

        Raises:
            InvalidInput: nothing says which are meant, or more than 10,000 are. Nothing is sent.
            EndpointNotFound: there is no such endpoint. EndpointConflict: it is not enabled.
        """
        meant = _meant(endpoint, job, webhook_id, since, until)
        document = {**meant, "state": state, "dry_run": dry_run}
        exchange = Exchange("POST", "/v1/webhooks/redeliver", document=document, wait_s=TRY_S)
        reply: Reply = yield from self._client.asking(exchange)
        return reply.decoded(Redelivered).count

    aredeliver = averb(redeliver)

    def _looked(self, below: str, query: Mapping[str, str] | None = None) -> Remote[Reply]:
        return (yield from self._client.asking(Exchange("GET", f"/v1/webhooks/{below}", query=query or {})))

    def _moved(self, what: str, name: str, **more: str) -> Remote[bool]:
        return (yield from self._said(what, {"name": name, **more})).decoded(EndpointMoved).changed

    def _said(self, what: str, document: Mapping[str, Any], *, wait_s: float = 0.0) -> Remote[Reply]:
        path = f"/v1/webhooks/endpoints/{what}"
        return (yield from self._client.asking(Exchange("POST", path, document=document, wait_s=wait_s)))

    def _once(self, below: str, document: Mapping[str, Any]) -> Remote[Reply]:
        """What is not sent again: its answer has a secret that no repeat can tell."""
        return (yield from asking(Exchange("POST", f"/v1/webhooks/endpoints{below}", document=document), 0.0))

    def _run(self, procedure: Remote[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Remote[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)


def _options(given: EndpointOptions) -> dict[str, Any]:
    """What was chosen, as it is sent. None takes a filter away."""
    found: dict[str, Any] = dict(given)
    if "timeout_s" in given:
        found["timeout_s"] = in_seconds(given["timeout_s"])
    return found


def _meant(
    endpoint: str | None,
    job: str | None,
    webhook_id: str | None,
    since: datetime | None,
    until: datetime | None,
) -> dict[str, str]:
    instants = {name: at.isoformat() for name, at in (("since", since), ("until", until)) if at is not None}
    named = {"endpoint": endpoint, "job": job, "webhook_id": webhook_id}
    return {**{name: value for name, value in named.items() if value is not None}, **instants}
