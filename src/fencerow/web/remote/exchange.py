"""Requests as data, and when one is sent again: what the loops for threads and event loops have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from fencerow.core.errors import DatabaseError, FencerowError, OutcomeUnknown, Unavailable
from fencerow.db.run import Pause
from fencerow.web.remote.refusals import refused

T = TypeVar("T")

FIRST_PAUSE_S = 0.2
PAUSE_S_MAX = 5.0

_now: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request. `wait_s`: for so long the gateway may hold its answer back, because we asked it to. `bound_s`: so
    long is waited for it in all; None: as long as a gateway gives itself."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    document: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    bound_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def decoded(self, kind: type[T]) -> T:
        """The document.

        Raises:
            Unavailable: it is none of the gateway's: something between answered in its place.
        """
        try:
            return msgspec.json.decode(self.content, type=kind)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise foreign(self.status, str(error)) from None


Remote = Generator[Exchange | Pause, Any, T]


def asking(exchange: Exchange, patience_s: float) -> Remote[Reply]:
    """Send a request, and send it again while that may help: each of ours may be repeated.

    Raises:
        Unavailable: nobody answered within `patience_s` seconds. OutcomeUnknown: it may have been done.
        FencerowError: the gateway refused it; the error is the one that the library itself raises.
    """
    pause_s, until = FIRST_PAUSE_S, _now() + patience_s
    doubt: OutcomeUnknown | None = None
    while True:
        try:
            reply: Reply = yield exchange
            if reply.status < 400:
                return reply
            error = refused(reply.status, reply.headers, reply.content)
        except (Unavailable, OutcomeUnknown) as lost:
            error = lost
        doubt = error if isinstance(error, OutcomeUnknown) else doubt
        wait_s = max(pause_s, getattr(error, "retry_after_s", None) or 0.0)
        if not passes(error) or _now() + wait_s > until:
            if doubt is not None and _did_nothing(error):
                raise doubt from error  # which says nothing of the try before
            raise error
        yield Pause(wait_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)


def _did_nothing(error: FencerowError) -> bool:
    """Whether it only tells that this try stored nothing, and not that no such request can."""
    return isinstance(error, DatabaseError) or error.repeat == "yes"


def passes(error: FencerowError) -> bool:
    """Whether it may go well a little later. What waits for a job's end asks again by itself."""
    return (
        isinstance(error, Unavailable | OutcomeUnknown) or getattr(error, "retry_after_s", None) is not None
    )


def foreign(status: int, why: str) -> Unavailable:
    """The error for an answer that is not the gateway's."""
    return Unavailable(
        f"an answer of status {status} is not the gateway's",
        why[:200],
        "check the address, and what stands between",
    )
