"""When a cron expression fires in a time zone, also where clocks are changed.

cronsim says which times of the wall fit the expression; it is given times without a zone only. Which instants those
are is decided here, by one of two rules. The hours of the expression choose, however they are spelled:

- **Named times**: it leaves hours of the day out (`30 2 * * *`, `*/30 0 * * *`, `0 */2 * * *`). Each time fires once. A
  time that the clock skips fires at the end of the gap; several of them fire there together, once. A time that the
  clock shows twice fires the first time.
- **Running**: it has every hour of the day (`*/15 * * * *`, `0 0-23 * * *`). It fires whenever the wall shows a time
  that fits: never in a gap, and in both passes of a repeated hour, so the distance from fire to fire stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

import fencerow.calendar.walls as walls

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND_US = 1_000_000
LOOK_BACK_S = 120
LOOK_BACK_FACTOR = 8
HOURS = 24


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression that was checked (`cron_text`), and the zone whose clock it names."""

    expression: str
    zone_name: str
    zone: tzinfo

    def next_after(self, instant_us: int, seed: str = "") -> int:  # noqa: ARG002 the clock fixes all
        """The first fire that is strictly later."""
        instant = instant_us // SECOND_US
        return SECOND_US * (
            self._running(instant) if _has_every_hour(self.expression) else self._named(instant)
        )

    def last_until(self, instant_us: int, seed: str = "") -> int:
        """The last fire that is not later. It looks back in growing steps, and walks forward from the first hit."""
        back_us = LOOK_BACK_S * SECOND_US
        while (found := self.next_after(instant_us - back_us, seed)) > instant_us:
            back_us *= LOOK_BACK_FACTOR
        while (following := self.next_after(found, seed)) <= instant_us:
            found = following
        return found

    def _named(self, instant: int) -> int:
        """In the second pass of a repeated hour, the times of the first pass lie behind: they are passed over."""
        fires = (walls.earliest(self.zone, shown) for shown in self._times(walls.wall(self.zone, instant)))
        return next(fire for fire in fires if fire > instant)

    def _running(self, instant: int) -> int:
        """From change to change of the offset: between two of them, wall and instants run side by side."""
        start = instant + 1
        while True:
            offset = walls.offset(self.zone, start)
            shown = next(self._times(walls.wall(self.zone, start) - walls.SECOND))
            fire = (shown - walls.EPOCH) // walls.SECOND - offset
            change = walls.first_change(self.zone, start, fire)
            if change is None:
                return fire
            start = change

    def _times(self, after: datetime) -> Iterator[datetime]:
        """The times of the wall that fit, strictly later than one of them."""
        from cronsim import CronSim

        return CronSim(self.expression, after)


@lru_cache(maxsize=4096)
def _has_every_hour(expression: str) -> bool:
    from cronsim import CronSim

    return len(set(CronSim(expression, walls.EPOCH).hours)) == HOURS
