"""Opening hours of a limit: windows of the calendar, such as `mon-fri 09:00-17:00 Europe/Berlin`, in which jobs start.

They are never shorter than they were said, also where a clock skips or repeats an hour. No clock and no I/O, but for
the data about time zones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from fencerow.calendar.stretches import Stretch, stretches_near
from fencerow.calendar.walls import DAY_S
from fencerow.calendar.window_text import Dated, Weekly, read

AHEAD_DAYS = 9  # each weekday once, wherever on earth it is already tomorrow
SECOND_US = 1_000_000
WEEK_US = 7 * DAY_S * SECOND_US


def parsed(text: object) -> Weekly | Dated:
    """The hours that a text means.

    Raises:
        InvalidWindow: it cannot be read, or names an unknown day, or a time that no clock shows. UnknownZone.
    """
    return read(text, "UTC", "hours")


def open_until(openings: Sequence[Weekly | Dated], now_us: int) -> tuple[bool, int | None]:
    """Whether it is open now, and when that changes; None: it does not change within a week, or never again."""
    for since, until in _around(tuple(openings), now_us // (DAY_S * SECOND_US)):
        opens_us, closes_us = since * SECOND_US, until * SECOND_US
        if opens_us <= now_us < closes_us:
            return True, closes_us if closes_us < now_us + WEEK_US else None
        if opens_us > now_us:
            return False, opens_us
    return False, None


@lru_cache(maxsize=1_000)
def _around(openings: tuple[Weekly | Dated, ...], day: int) -> list[Stretch]:
    """When it is open around a day, which is counted from 1970."""
    return stretches_near(openings, day * DAY_S, AHEAD_DAYS)
