"""When a cron expression fires in a time zone, also where clocks are changed.

cronsim says which times of the wall fit the expression; it is given times without a zone only. Which instants those
are is decided here, by one of two rules. The expression's own spelling chooses, as in Debian's cron:

- **Named times**: neither the minute nor the hour starts with `*` (`30 2 * * *`). Each time fires once. A time that
  the clock skips fires at the end of the gap; several of them fire there together, once. A time that the clock
  shows twice fires the first time.
- **Running**: the minute or the hour starts with `*` (`*/15 * * * *`). It fires whenever the wall shows a time that
  fits: never in a gap, and in both passes of a repeated hour, so the distance from fire to fire stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

import fencerow.schedules.walls as walls

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND_US = 1_000_000
LOOK_BACK_S = 120
LOOK_BACK_FACTOR = 8


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression that was checked (`cron_text`), and the zone whose clock it names."""

    expression: str
    zone_name: str
    zone: tzinfo

    def next_after(self, instant_us: int, seed: str = "") -> int:  # noqa: ARG002 the clock fixes all
        """The first fire that is strictly later."""
        instant = instant_us // SECOND_US
        return SECOND_US * (self._named(instant) if self._names_times() else self._running(instant))

    def last_until(self, instant_us: int, seed: str = "") -> int:
        """The last fire that is not later. It looks back in growing steps, and walks forward from the first hit."""
        back_us = LOOK_BACK_S * SECOND_US
        while (found := self.next_after(instant_us - back_us, seed)) > instant_us:
            back_us *= LOOK_BACK_FACTOR
        while (following := self.next_after(found, seed)) <= instant_us:
            found = following
        return found

    def _names_times(self) -> bool:
        minute, hour = self.expression.split()[-5:-3]
        return not minute.startswith("*") and not hour.startswith("*")

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
