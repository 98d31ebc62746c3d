"""Rates, as arithmetic on whole microseconds (GCRA). No clock and no I/O: whoever asks says what time it is.

One number is kept for each rate, `tat`: the instant at which the bucket is full again. A start moves it on by one
interval. A start may come as early as `burst - 1` intervals before `tat`, and never before now.
"""

from __future__ import annotations

from dataclasses import dataclass

HORIZON_US = 1_000_000  # starts are reserved so far ahead, so that nobody has to ask for each


@dataclass(frozen=True, slots=True)
class Pace:
    """One start each `interval_us`, and `burst` of them at once after a pause."""

    interval_us: int
    burst: int = 1

    def settled(self, tat_us: int, now_us: int) -> int:
        """`tat` as it counts now.

        One that lies further ahead than any start can bring it was written before the clock went back. The bucket is
        then taken to be empty, as it was at worst.
        """
        ahead_us = self.burst * self.interval_us + max(HORIZON_US, self.interval_us)
        return now_us + self.burst * self.interval_us if tat_us > now_us + ahead_us else max(tat_us, now_us)

    def start_us(self, tat_us: int, now_us: int, number: int = 0) -> int:
        """When the next start may come; `number` starts are taken to come before it."""
        settled = self.settled(tat_us, now_us)
        return max(now_us, settled + (number - self.burst + 1) * self.interval_us)

    def starts_us(self, tat_us: int, now_us: int, *, until_us: int, at_most: int) -> list[int]:
        """The starts that may come until then, the first first."""
        settled = self.settled(tat_us, now_us)
        first_us = settled - (self.burst - 1) * self.interval_us
        room = (until_us - first_us) // self.interval_us + 1 if until_us >= now_us else 0
        count = max(0, min(at_most, room))
        return [max(now_us, first_us + number * self.interval_us) for number in range(count)]

    def taken(self, tat_us: int, now_us: int, count: int) -> int:
        """`tat` after so many starts."""
        return self.settled(tat_us, now_us) + count * self.interval_us

    def bounded(self, tat_us: int, now_us: int, outstanding: int) -> int:
        """`tat` when so many reserved starts may all come now, late: they must find the bucket as full as they need."""
        return max(tat_us, now_us - (self.burst - outstanding) * self.interval_us)
