"""What a worker knows of the limit of one queue: whether there is one, and since when it lets nothing through."""

from __future__ import annotations

import time


class QueueLimit:
    """All times are this host's monotonic seconds. `is_there`: the last look from the beginning has seen a limit."""

    def __init__(self, poll_max_s: float) -> None:
        self.is_there = False
        self._poll_max_s = poll_max_s
        self._closed_until = 0.0  # it lets nothing through before
        self._full_until = 0.0  # it is full; an end may make room sooner

    def met(self, again_s: float | None) -> None:
        """It lets no more through: for so long, or (None) until a job of the queue has ended somewhere."""
        now = time.monotonic()
        if again_s is None:
            self._full_until = now + self._poll_max_s
        else:
            self._closed_until = now + min(again_s, self._poll_max_s)

    def made_room(self) -> bool:
        """A job has ended: look at once, if it was full. Returns whether it was."""
        was_full = self._full_until > time.monotonic()
        self._full_until = 0.0
        return was_full

    def is_closed(self, now: float) -> bool:
        """Whether it is known to let nothing through yet, whatever ends."""
        return now < self._closed_until

    def pause_s(self, now: float) -> float:
        """How long nothing is to be asked for, as far as is known."""
        return max(0.0, self._closed_until - now, self._full_until - now)
