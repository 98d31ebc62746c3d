"""The suspects that a worker holds: how many it may run at once, and which of them need it for themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from fencerow.worker.attempt import Attempt
from fencerow.worker.handler import Handler

GROW_S = 1.0  # between one more and the next: a process is dear to start, and short jobs need few


class Suspects:
    """Begins with one at a time and trusts in one more after each that ended well, up to `at_most`.

    A crash brings it back to one: a job that takes more than its own process along, or that leaves too little memory
    for those beside it, then meets nobody. Used on the event loop only.
    """

    def __init__(self, at_most: int, must_be_alone: Callable[[Handler], bool]) -> None:
        self._at_most = at_most
        self._must_be_alone = must_be_alone
        self._held: set[Attempt] = set()
        self._at_once = 1
        self._grown_at = 0.0

    @property
    def held(self) -> int:
        """Suspects that are claimed here and not yet confirmed."""
        return len(self._held)

    @property
    def at_once(self) -> int:
        """How many may be held now."""
        return self._at_once

    def take(self, attempt: Attempt) -> None:
        """Note a claimed attempt, if it is a suspect's."""
        if attempt.claimed.suspect:
            self._held.add(attempt)

    def over(self, attempt: Attempt) -> bool:
        """The attempt has ended; returns whether it was a suspect's, so that the next may be claimed."""
        if attempt not in self._held:
            return False
        self._held.discard(attempt)
        if attempt.crashed:
            self._at_once = 1
        elif attempt.started and attempt.interrupt is None:
            self._grow()
        return True

    def need_the_worker(self) -> bool:
        """Whether nothing else should be claimed: one that is held runs here alone, or soon will."""
        return any(self._must_be_alone(attempt.handler) for attempt in self._held)

    def sorted_out(self, handlers: Mapping[str, Handler]) -> tuple[list[str], list[str]]:
        """The names whose suspects run in child processes, and those whose suspects need the worker for themselves."""
        names: tuple[list[str], list[str]] = ([], [])
        for name, handler in handlers.items():
            names[self._must_be_alone(handler)].append(name)
        return names

    def _grow(self) -> None:
        now = time.monotonic()
        if self._at_once < self._at_most and now - self._grown_at >= GROW_S:
            self._at_once += 1
            self._grown_at = now
