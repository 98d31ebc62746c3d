"""Which of two due jobs goes first where the time that they have been due counts beside their priority.

A job that has been due for `ageing_s` counts as one of the next higher priority. All jobs age alike, so the order of
two never changes while they wait, and needs no clock: each step of priority counts as being due `ageing_s` earlier, and
who was due first goes first. So nothing is written while jobs wait, no lane is walked, and a claim is the same
statement: only the order in which it is given the lanes differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Ageing:
    """How age counts; with None it does not, and a higher priority always goes first."""

    ageing_s: float | None

    def rank(self, priority: int, run_at_us: int) -> float:
        """The place in the order: the least goes first."""
        if self.ageing_s is None:
            return -priority
        return run_at_us - priority * self.ageing_s * 1e6


STRICT: Final = Ageing(None)
