"""When windows are on the clock of their zone: stretches of instants.

A window lasts from the first instant at which the wall shows its start to the last instant at which the wall shows a
time before its end. So one that meets a repeated hour lasts through both passes of it, without a break in between; of
one that meets a gap, what the clock skips is missing. Instants are whole seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import fencerow.calendar.walls as walls
from fencerow.calendar.window_text import Dated, Weekly

DAYS_BACK = 9  # a window of a week, and a day for a change of clocks
CHANGE_MAX = timedelta(days=1)

Stretch = tuple[int, int]
Window = Weekly | Dated


def stretch(window: Window, instant: int) -> Stretch | None:
    """The window's stretch that holds the instant; None if it holds none."""
    shown = walls.wall(window.zone, instant)
    for start, end in _on_the_wall(window, shown, days_ahead=1):
        if end + CHANGE_MAX < shown:
            continue
        since = walls.earliest(window.zone, start)
        if since <= instant:
            until = walls.latest_end(window.zone, end)
            if instant < until:
                return since, until
    return None


def stretches_near(windows: Sequence[Window], instant: int, days_ahead: int) -> list[Stretch]:
    """All that hold the instant or begin within these days, in order; those that touch or overlap are one.

    Windows of a date are among them, however far away they are.
    """
    found: list[Stretch] = []
    for window in windows:
        shown = walls.wall(window.zone, instant)
        found += (
            (walls.earliest(window.zone, start), walls.latest_end(window.zone, end))
            for start, end in _on_the_wall(window, shown, days_ahead)
        )
    return _joined(sorted(each for each in found if each[0] < each[1]))


def _on_the_wall(window: Window, shown: datetime, days_ahead: int) -> Iterator[tuple[datetime, datetime]]:
    """Times of the wall at which the window starts and ends, from those that may hold what the wall shows now."""
    if isinstance(window, Dated):
        yield window.start, window.end
        return
    midnight = shown.replace(hour=0, minute=0, second=0)
    for back in range(-days_ahead, DAYS_BACK):
        day = midnight - timedelta(days=back)
        if day.weekday() in window.days:
            yield day + timedelta(minutes=window.start_min), day + timedelta(minutes=window.end_min)


def _joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for start, end in stretches:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined
