"""How many requests are served at once, of all callers together and of each. Who finds no seat is told at once.

Requests that wait (a long poll, a stream) take seats in a room of their own, so they keep no others out.
"""

from __future__ import annotations

from collections import Counter
from types import TracebackType

from fencerow.web.errors import TooManyRequests
from fencerow.web.settings import WebSettings

RETRY_S = 1.0


class Room:
    """Seats of one event loop or thread: `seats_max` in all, `caller_max` of them for one caller; `what` sit there."""

    def __init__(self, seats_max: int, caller_max: int, what: str = "requests") -> None:
        self._what = what
        self._seats_max = seats_max
        self._caller_max = caller_max
        self._of_caller: Counter[str] = Counter()
        self.taken = 0

    def __len__(self) -> int:
        """How many callers have a seat."""
        return len(self._of_caller)

    @staticmethod
    def of(settings: WebSettings) -> Room:
        """For requests that are answered at once."""
        return Room(settings.web_requests_max, settings.web_requests_caller_max)

    @staticmethod
    def waiting(settings: WebSettings) -> Room:
        """For requests that wait."""
        return Room(settings.web_waiting_max, settings.web_waiting_caller_max)

    @staticmethod
    def streaming(settings: WebSettings) -> Room:
        """For streams of events, as long as they last."""
        return Room(settings.web_streams_max, settings.web_streams_caller_max, "streams")

    def seat(self, who: str) -> Seat:
        """A seat, to be left by `with`, or by `leave` where the answer outlives the call.

        Raises:
            TooManyRequests: the caller has all that one may have (429), or all are taken (503).
        """
        if self._of_caller[who] >= self._caller_max:
            raise _full(f"you have {self._caller_max} {self._what} under way", "no caller may have more", 429)
        if self.taken >= self._seats_max:
            raise _full(f"as many {self._what} are under way as can be", "all callers together count", 503)
        self.taken += 1
        self._of_caller[who] += 1
        return Seat(self, who)

    def left(self, who: str) -> None:
        self.taken -= 1
        self._of_caller[who] -= 1
        if not self._of_caller[who]:
            del self._of_caller[who]


class Seat:
    """One request that is under way. It may be left twice: the second time does nothing."""

    def __init__(self, room: Room, who: str) -> None:
        self._room: Room | None = room
        self._who = who

    def leave(self) -> None:
        """Give it back."""
        room, self._room = self._room, None
        if room is not None:
            room.left(self._who)

    def __enter__(self) -> Seat:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.leave()


def _full(what: str, why: str, status: int) -> TooManyRequests:
    return TooManyRequests(what, why, "wait as Retry-After says", retry_after_s=RETRY_S, status=status)
