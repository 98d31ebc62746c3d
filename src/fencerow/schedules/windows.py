"""Maintenance windows: stretches of time in which a schedule starts nothing. Pure, as the specification is.

How long a window lasts where clocks are changed: fencerow.calendar.stretches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import fencerow.calendar.walls as walls
import fencerow.calendar.window_text as window_text
from fencerow.calendar.errors import InvalidWindow
from fencerow.calendar.stretches import stretch
from fencerow.calendar.window_text import Dated, Weekly

SECOND_US = 1_000_000
WINDOWS_MAX = 50
TRIED_FROM = tuple(
    range(1_767_225_600, 1_798_761_600, 30 * walls.DAY_S)
)  # once a month of 2026, summer and winter
OPEN_WITHIN_S = 15 * walls.DAY_S
FIRES_TRIED = 400  # more than a year of daily ones
TRIED_FOR_US = (
    12 * 366 * walls.DAY_S * SECOND_US
)  # for those of one day of the year: it moves through the week


@dataclass(frozen=True, slots=True)
class MaintenanceWindows:
    """The windows of one schedule; any of them closes it."""

    windows: tuple[Weekly | Dated, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[object], zone_name: str = "UTC") -> MaintenanceWindows:
        """From what was declared or stored; `zone_name` holds for those that name no zone.

        Raises InvalidWindow for one that cannot be read, or if they never leave a time open; UnknownZone.
        """
        if isinstance(texts, str) or len(texts) > WINDOWS_MAX:
            found = "one text" if isinstance(texts, str) else f"{len(texts)}"
            why = f"expected a list of at most {WINDOWS_MAX}"
            raise InvalidWindow(f"maintenance windows are {found}", why, window_text.FORM)
        made = cls(tuple(window_text.read(text, zone_name, "maintenance window") for text in texts))
        made._check_that_it_opens()
        return made

    def document(self) -> list[str]:
        """The same as JSON can carry it, in one spelling."""
        return [window.text() for window in self.windows]

    def closed(self, instant_us: int) -> bool:
        """Whether nothing may start at this instant."""
        return self._open_from(instant_us // SECOND_US) is not None

    def opens_after(self, instant_us: int) -> int:
        """The first instant, not before this one, at which no window is closed. It is the instant itself if open."""
        instant = instant_us // SECOND_US
        while (end := self._open_from(instant)) is not None:
            instant = end
        return max(instant_us, instant * SECOND_US)

    def closed_since(self, instant_us: int) -> int:
        """The first instant of the stretch that is closed and holds this one. It is the instant itself if open."""
        instant = found = instant_us // SECOND_US
        while (start := self._closed_from(instant)) is not None:
            found, instant = start, start - 1
        return min(instant_us, found * SECOND_US)

    def swallow(self, next_after: Callable[[int], int]) -> bool:
        """Whether each fire falls into these windows; `next_after` names the first one after an instant."""
        weekly = self._weekly()
        instant_us = start_us = TRIED_FROM[0] * SECOND_US
        for _ in range(FIRES_TRIED):
            fire_us = next_after(instant_us)
            if not weekly.closed(fire_us):
                return False
            if fire_us > start_us + TRIED_FOR_US:
                break
            instant_us = weekly.opens_after(fire_us) - 1
        return True

    def _weekly(self) -> MaintenanceWindows:
        """Without those of a date, which end."""
        return MaintenanceWindows(tuple(each for each in self.windows if isinstance(each, Weekly)))

    def in_words(self) -> str:
        """For people: `closed daily 22:00-02:00 UTC and sat,sun 00:00-24:00 UTC`."""
        return f"closed {' and '.join(self.document())}" if self.windows else "always open"

    def _open_from(self, instant: int) -> int | None:
        """The latest end of the windows that are closed now; None if none is."""
        found = (stretch(window, instant) for window in self.windows)
        return max((each[1] for each in found if each is not None), default=None)

    def _closed_from(self, instant: int) -> int | None:
        """The earliest start of the windows that are closed now; None if none is."""
        found = (stretch(window, instant) for window in self.windows)
        return min((each[0] for each in found if each is not None), default=None)

    def _check_that_it_opens(self) -> None:
        """Those of a date end. Those of the week are followed through each month of a year."""
        weekly = self._weekly()
        for start in TRIED_FROM if weekly.windows else ():
            instant = start
            while (end := weekly._open_from(instant)) is not None:
                instant = end
                if instant > start + OPEN_WITHIN_S:
                    what = f"these maintenance windows never end: {', '.join(weekly.document())}"
                    raise InvalidWindow(
                        what, "together they leave no time open", "to stop a schedule, pause it"
                    )
