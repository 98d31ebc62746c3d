"""What a clock on the wall shows, and which instants that is: never, once, or twice.

Instants are whole seconds since 1970. A wall time is a datetime without a zone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 a wall time
SECOND = timedelta(seconds=1)
DAY_S = 86_400


def offset(zone: tzinfo, instant: int) -> int:
    """How far the wall is ahead of UTC at an instant, in seconds."""
    found = datetime.fromtimestamp(instant, zone).utcoffset()
    assert found is not None  # every zone that we make has one
    return round(found.total_seconds())


def wall(zone: tzinfo, instant: int) -> datetime:
    return EPOCH + timedelta(seconds=instant + offset(zone, instant))


def earliest(zone: tzinfo, shown: datetime) -> int:
    """The first instant at which the wall shows this time; for one that is skipped, the end of the gap."""
    before, after = _both(zone, shown)
    if wall(zone, before) == shown:
        return before
    return _gap_end(zone, after, before)


def latest_end(zone: tzinfo, shown: datetime) -> int:
    """The instant from which the wall shows no earlier time any more: behind the second pass of a repeated hour.

    A time that ends the first pass, and that the second one does not reach, is the end of the first.
    """
    last_before = shown - SECOND
    before, after = _both(zone, last_before)
    if wall(zone, after) == last_before:
        return after + 1
    return _gap_end(zone, after, before)


def first_change(zone: tzinfo, start: int, end: int) -> int | None:
    """The first instant in (start, end] from which another offset holds; None if one holds throughout.

    Looks at each day: two changes within one that undo each other have never been, and would not be seen.
    """
    was = offset(zone, start)
    while start < end:
        step = min(start + DAY_S, end)
        if offset(zone, step) != was:
            return _bisect(zone, start, step, was)
        start = step
    return None


def _gap_end(zone: tzinfo, start: int, end: int) -> int:
    found = first_change(zone, start, end)
    assert found is not None  # a time that no reading shows lies in a gap, and a gap is a change
    return found


def _bisect(zone: tzinfo, start: int, end: int, was: int) -> int:
    while end - start > 1:
        middle = (start + end) // 2
        if offset(zone, middle) == was:
            start = middle
        else:
            end = middle
    return end


def _both(zone: tzinfo, shown: datetime) -> tuple[int, int]:
    """Two readings of a wall time: by the offset before a change near by, and by the one after it."""
    aware = shown.replace(tzinfo=zone)
    return _seconds(aware.replace(fold=0)), _seconds(aware.replace(fold=1))


def _seconds(aware: datetime) -> int:
    return (aware.astimezone(UTC) - UTC_EPOCH) // SECOND


UTC_EPOCH = EPOCH.replace(tzinfo=UTC)
