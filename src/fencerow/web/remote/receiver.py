"""A receiver of handovers behind a gateway: what `Receiver` is beside the database."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.verb import averb, verb
from fencerow.web.gateway.ends import Confirmed, End, Ends, Released
from fencerow.web.remote.base import RemoteBase
from fencerow.web.remote.exchange import Exchange, Remote, Reply

T = TypeVar("T")

LEASE_S = 60.0


class RemoteReceiver:
    """Takes the ends of jobs that go to the receiver `name`, in the order of their keys. For one loop or thread.

    Each method has an async twin with an `a` in front. Each may be repeated, so what is lost is sent again.

    Raises:
        Unavailable, OutcomeUnknown: the gateway did not answer within the client's patience.
        NotAuthenticated, NotAllowed: the token is not good for this.
    """

    def __init__(self, client: RemoteBase, name: str) -> None:
        self._client = client
        self.name = name
        self._after = ""

    def __repr__(self) -> str:
        return f"<RemoteReceiver {self.name}>"

    @verb
    def take(self, limit: int = 1, *, lease_s: Seconds = LEASE_S, wait_s: Seconds = 0.0) -> Remote[list[End]]:
        """Take the next ends, of each key the first that nobody has confirmed; none: none came within `wait_s` seconds.

        What is not confirmed within `lease_s` seconds is handed over again, under another fence.

        Raises:
            InvalidInput: `limit` is not from 1 to 32, or `wait_s` more than 60.
        """
        waiting_s = in_seconds(wait_s)
        document = {
            "receiver": self.name,
            "limit": limit,
            "lease_s": in_seconds(lease_s),
            "wait_s": waiting_s,
            "take": new_id(),  # the same take where an answer was lost
            "after": self._after,
        }
        exchange = Exchange("POST", "/v1/handovers/take", document=document, wait_s=waiting_s)
        reply: Reply = yield from self._client.asking(exchange)
        found = reply.decoded(Ends)
        self._after = found.after
        return found.ends

    atake = averb(take)

    @verb
    def confirm(self, end: End) -> Remote[bool]:
        """Say that the receiver has this end, so that the next of its key may be taken; whether it was said before.

        Raises:
            HandoverLost: its lease was over and others have taken it since. They deliver it too.
            HandoverNotFound: it is not there any more, or never went to this receiver.
        """
        reply = yield from self._asked(end, "confirm")
        return reply.decoded(Confirmed).replay

    aconfirm = averb(confirm)

    @verb
    def release(self, end: End, *, delay_s: Seconds = 0.0) -> Remote[bool]:
        """Give a take up, so that anybody may take the end after `delay_s` seconds; False: it was over already.

        Raises:
            HandoverNotFound: it is not there any more, or never went to this receiver.
        """
        reply = yield from self._asked(end, "release", delay_s=in_seconds(delay_s))
        return reply.decoded(Released).released

    arelease = averb(release)

    def _asked(self, end: End, what: str, **more: float) -> Remote[Reply]:
        document = {"receiver": self.name, "fence": end.fence, **more}
        path = f"/v1/jobs/{quote(end.id)}/{what}"
        return (yield from self._client.asking(Exchange("POST", path, document=document)))

    def _run(self, procedure: Remote[T], connection: object | None = None) -> T:
        return self._client.run(procedure, connection)

    async def _arun(self, procedure: Remote[T], connection: object | None = None) -> T:
        return await self._client.arun(procedure, connection)
