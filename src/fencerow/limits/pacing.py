"""Rates, as arithmetic on whole microseconds (GCRA). No clock and no I/O: whoever asks says what time it is.

One number is kept for each rate, `tat`: the instant at which the bucket is full again. A start moves it on by one
interval. A start may come as early as `burst - 1` intervals before `tat`, and never before now.

Nobody looks at the very instant at which the next start may come. If somebody waited for it (`owed`), the next look
makes up for what it is late, for one second at most: without that each start would come later than the one before it by
what a look takes, and a rate of 100 a second would let through a fraction of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CATCH_UP_US: Final = 1_000_000
UNCLAIMED_US: Final = 150_000  # beside the burst, turns of so long may wait for whoever starts them
CLAIMED_US_MAX: Final = 5_000_000  # nobody tells that a turn was claimed: it is looked at so often, at least
LOOK_US: Final = 20_000  # quick rates are looked at no more often than this, for several starts at once


@dataclass(frozen=True, slots=True)
class Pace:
    """One start each `interval_us`, and `burst` of them at once after a pause."""

    interval_us: int
    burst: int = 1

    def bounded(self, tat_us: int, now_us: int) -> int:
        """`tat` as it may be at most: then the bucket is empty. One that lies further ahead was written before the
        clock went back; whoever keeps this instead waits for one burst, and not until the clock is there again."""
        return min(tat_us, now_us + self.burst * self.interval_us)

    def start_us(self, tat_us: int, now_us: int, number: int = 0, *, owed: bool = False) -> int:
        """When the next start may come; `number` starts are taken to come before it."""
        return max(now_us, self._settled(tat_us, now_us, owed) + (number - self.burst + 1) * self.interval_us)

    def room(self, tat_us: int, now_us: int, *, at_most: int, owed: bool = False) -> int:
        """How many starts may come now."""
        first_us = self._settled(tat_us, now_us, owed) - (self.burst - 1) * self.interval_us
        return max(0, min(at_most, (now_us - first_us) // self.interval_us + 1))

    def taken(self, tat_us: int, now_us: int, count: int, *, owed: bool = False) -> int:
        """`tat` after so many starts."""
        return self._settled(tat_us, now_us, owed) + count * self.interval_us

    @property
    def unclaimed_max(self) -> int:
        """How many turns there may be that nobody has started: those start together when somebody comes."""
        return self.burst + UNCLAIMED_US // self.interval_us

    def claimed_us(self, now_us: int) -> int:
        """When to look whether one of these was claimed."""
        return now_us + min(CLAIMED_US_MAX, max(LOOK_US, self.interval_us))

    def look_us(self, start_us: int, now_us: int) -> int:
        """When to look whether the start of that instant, and those after it, may come."""
        return max(start_us, now_us + LOOK_US) if self.interval_us < LOOK_US else start_us

    def _settled(self, tat_us: int, now_us: int, owed: bool) -> int:
        """`tat` to count from. Of a bucket that was full longer than is made up for, nothing is owed."""
        bounded_us = self.bounded(tat_us, now_us)
        return bounded_us if owed and bounded_us >= now_us - CATCH_UP_US else max(bounded_us, now_us)
