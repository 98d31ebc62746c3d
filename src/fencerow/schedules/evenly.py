"""Fires that are evenly spaced: n per hour, or every n seconds. They lie on a grid that never drifts.

The grid begins in 1970, not when somebody started a worker: every host computes the same, after any restart.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fencerow.schedules.seeds import below


@dataclass(frozen=True, slots=True)
class Evenly:
    """`period` and `shift_us` are microseconds. `spread`: the seed moves the grid by a part of the period.

    A period need not be whole: 7 an hour are 7 in each hour. The fires are rounded down to microseconds, one by one,
    so no error adds up.
    """

    period: Fraction
    shift_us: int
    spread: bool

    def next_after(self, instant_us: int, seed: str) -> int:
        """The first fire that is strictly later."""
        origin = self._origin(seed)
        return self._at(self._index_above(instant_us - origin), origin)

    def last_until(self, instant_us: int, seed: str) -> int:
        """The last fire that is not later."""
        origin = self._origin(seed)
        return self._at(self._index_above(instant_us - origin) - 1, origin)

    def _origin(self, seed: str) -> int:
        return self.shift_us + (below(int(self.period), "phase", seed) if self.spread else 0)

    def _at(self, index: int, origin: int) -> int:
        return origin + index * self.period.numerator // self.period.denominator

    def _index_above(self, since_us: int) -> int:
        """The least index whose fire, rounded down, is above: index * period >= since + 1."""
        return -(-(since_us + 1) * self.period.denominator // self.period.numerator)
