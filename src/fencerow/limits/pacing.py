"""Rates, as arithmetic on whole microseconds (GCRA). No clock and no I/O: whoever asks says what time it is.

One number is kept for each rate, `tat`: the instant at which the bucket is full again. A start moves it on by one
interval. A start may come as early as `burst - 1` intervals before `tat`, and never before now.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """One start each `interval_us`, and `burst` of them at once after a pause."""

    interval_us: int
    burst: int = 1

    def bounded(self, tat_us: int, now_us: int) -> int:
        """`tat` as it may be at most: then the bucket is empty. One that lies further ahead was written before the
        clock went back; whoever keeps this instead waits for one burst, and not until the clock is there again."""
        return min(tat_us, now_us + self.burst * self.interval_us)

    def start_us(self, tat_us: int, now_us: int, number: int = 0) -> int:
        """When the next start may come; `number` starts are taken to come before it."""
        return max(now_us, self._settled(tat_us, now_us) + (number - self.burst + 1) * self.interval_us)

    def room(self, tat_us: int, now_us: int, *, at_most: int) -> int:
        """How many starts may come now."""
        first_us = self._settled(tat_us, now_us) - (self.burst - 1) * self.interval_us
        return max(0, min(at_most, (now_us - first_us) // self.interval_us + 1))

    def taken(self, tat_us: int, now_us: int, count: int) -> int:
        """`tat` after so many starts."""
        return self._settled(tat_us, now_us) + count * self.interval_us

    def _settled(self, tat_us: int, now_us: int) -> int:
        return max(self.bounded(tat_us, now_us), now_us)
