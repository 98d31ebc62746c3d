"""The suspects that a worker holds: how many it may run at once, and which of them no child process can run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.handler import Handler

GROW_S = 1.0  # between one more and the next: a process is dear to start, and short jobs need few
PATIENCE_S = 10.0  # those that are held have lived for so long: one more need not wait for their end


class Suspects:
    """Begins with one at a time and trusts in one more after each that ended well, up to `at_most`.

    So it does when those it holds have lived for a while: a job that takes an hour must not hold back all others. A
    crash brings it back to one: a job that takes more than its own process along, or that leaves too little memory for
    those beside it, then meets nobody. Used on the event loop only.
    """

    def __init__(self, at_most: int, stays_here: Callable[[Handler], bool]) -> None:
        self._at_most = at_most
        self._stays_here = stays_here
        self._held: set[Attempt] = set()
        self._at_once = 1
        self._grown_at = 0.0
        self._taken_at = 0.0  # the last

    @property
    def held(self) -> int:
        """Suspects that are claimed here and not yet confirmed."""
        return len(self._held)

    def room(self) -> int:
        """How many more may be held now."""
        now = time.monotonic()
        if len(self._held) >= self._at_once and now - max(self._taken_at, self._grown_at) >= PATIENCE_S:
            self._grow(now)
        return max(0, self._at_once - len(self._held))

    def take(self, attempt: Attempt) -> None:
        """Note a claimed attempt, if it is a suspect's."""
        if attempt.claimed.suspect:
            self._held.add(attempt)
            self._taken_at = time.monotonic()

    def over(self, attempt: Attempt) -> bool:
        """The attempt has ended; returns whether it was a suspect's, so that the next may be claimed."""
        if attempt not in self._held:
            return False
        self._held.discard(attempt)
        if attempt.crashed:
            self._at_once = 1
        elif attempt.started and attempt.interrupt is None:
            self._grow(time.monotonic())
        return True

    def sorted_out(self, handlers: Mapping[str, Handler]) -> tuple[list[str], list[str]]:
        """The names whose suspects run in child processes, and those whose suspects run here; one at a time."""
        names: tuple[list[str], list[str]] = ([], [])
        for name, handler in handlers.items():
            names[self._stays_here(handler)].append(name)
        if any(self._stays_here(attempt.handler) for attempt in self._held):
            return names[0], []
        return names

    def _grow(self, now: float) -> None:
        if self._at_once < self._at_most and now - self._grown_at >= GROW_S:
            self._at_once += 1
            self._grown_at = now
