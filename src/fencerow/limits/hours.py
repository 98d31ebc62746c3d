"""Opening hours of a limit, in the zone in which people say them: `mon-fri 09:00-17:00 Europe/Berlin`.

A wall clock that skips an hour opens or closes at the end of the gap; one that repeats an hour opens at its first
time and closes at its second. So hours are never shorter than they were said. No clock and no I/O, but for the data
about time zones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache

from fencerow.core.errors import InvalidInput
from fencerow.core.model.zones import OF_THIS_MACHINE, zone_named

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WRITTEN = re.compile(
    r"(?:(?P<days>[a-z,\-]+) +)?(?P<opens>\d{2}:\d{2})-(?P<closes>\d{2}:\d{2})(?: +(?P<zone>[A-Za-z0-9_+\-/]+))?",
    re.ASCII,
)
MINUTES_PER_DAY = 24 * 60
DAY_US = 86_400_000_000
AHEAD_DAYS = 9  # each weekday once, wherever on earth it is already tomorrow
WHOLE_WEEK = frozenset(range(7))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Opening:
    """Open from one minute of these weekdays to another; past midnight if it ends no later than it begins."""

    days: frozenset[int]
    opens: int
    closes: int
    zone: str

    def spans(self, day: date) -> Iterator[tuple[int, int]]:
        """When it is open after it opened on this day, as UTC microseconds."""
        if day.weekday() in self.days:
            days = 0 if self.closes > self.opens else 1
            yield (
                _opens_us(day, self.opens, self.zone),
                _closes_us(day + timedelta(days), self.closes, self.zone),
            )


def parsed(text: object) -> Opening:
    """The hours that a text means.

    Raises:
        InvalidInput: it cannot be read, names an unknown day or zone, or a time that no clock shows.
    """
    found = WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise _unreadable(text)
    zone = found["zone"] or "UTC"
    _zone(zone)
    days = WHOLE_WEEK if found["days"] is None else frozenset(_days(found["days"]))
    opens, closes = _minute(found["opens"]), _minute(found["closes"])
    if opens == MINUTES_PER_DAY:
        raise _unreadable(text)
    return Opening(days, opens, closes, zone)


def open_until(openings: Sequence[Opening], now_us: int) -> tuple[bool, int | None]:
    """Whether it is open now, and when that changes; None: it does not change within a week."""
    for opens_us, closes_us in _around(tuple(openings), now_us // DAY_US):
        if opens_us <= now_us < closes_us:
            return True, closes_us if closes_us < now_us + 7 * DAY_US else None
        if opens_us > now_us:
            return False, opens_us
    return False, None


@lru_cache(maxsize=1_000)
def _around(openings: tuple[Opening, ...], day: int) -> list[tuple[int, int]]:
    """When it is open around a day, which is counted from 1970: those that touch or overlap are one."""
    today = EPOCH.date() + timedelta(day)
    days = [today + timedelta(ahead) for ahead in range(-3, AHEAD_DAYS + 1)]
    spans = [span for opening in openings for each in days for span in opening.spans(each)]
    return _joined(sorted(each for each in spans if each[0] < each[1]))


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for opens_us, closes_us in spans:
        if joined and opens_us <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], closes_us)
        else:
            joined.append((opens_us, closes_us))
    return joined


def _opens_us(day: date, minute: int, zone: str) -> int:
    """The first instant at which the wall clock shows this; in a gap the instant at which the gap ends."""
    return min(_instants(day, minute, zone))


def _closes_us(day: date, minute: int, zone: str) -> int:
    """The last instant at which the wall clock shows this; in a gap the instant at which the gap ends."""
    return max(_instants(day, minute, zone))


def _instants(day: date, minute: int, zone: str) -> tuple[int, ...]:
    local = datetime.combine(day, time.min) + timedelta(minutes=minute)
    known = _zone(zone)
    both = [local.replace(tzinfo=known, fold=fold).astimezone(UTC) for fold in (0, 1)]
    shown = [each for each in both if each.astimezone(known).replace(tzinfo=None) == local]
    if not shown:
        return (_us(_gap_ends(both, known)),)
    return tuple(_us(each) for each in shown)


def _gap_ends(both: Sequence[datetime], zone: tzinfo) -> datetime:
    """The instant at which the wall clock jumps. It lies between the two readings of a time that no clock shows."""
    first, last = min(both), max(both)
    before = first.astimezone(zone).utcoffset()
    while last - first > timedelta(seconds=1):
        middle = first + (last - first) / 2
        if middle.astimezone(zone).utcoffset() == before:
            first = middle
        else:
            last = middle
    return last.replace(microsecond=0)


def _us(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(microseconds=1)


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name in OF_THIS_MACHINE:
        raise InvalidInput(
            f"the time zone {name} is refused",
            "it means another zone on every host, so workers would open at different instants",
            "name the zone itself, such as Europe/Berlin",
        )
    if (found := zone_named(name)) is None:
        raise InvalidInput(
            f"there is no time zone {ascii(name)[:60]}",
            "zones have names such as Europe/Berlin or UTC, from this machine's tz database or the package tzdata",
            "correct the name, or install tzdata",
        )
    return found


def _days(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            raise _unreadable(text)
        begin, end = DAYS.index(first), DAYS.index(last or first)
        yield from (number % 7 for number in range(begin, end + 1 if end >= begin else end + 8))


def _minute(text: str) -> int:
    hour, minute = int(text[:2]), int(text[3:])
    if minute > 59 or hour * 60 + minute > MINUTES_PER_DAY:
        raise _unreadable(text)
    return hour * 60 + minute


def _unreadable(text: object) -> InvalidInput:
    return InvalidInput(
        f"the hours {ascii(text)[:80]} cannot be read",
        "expected days, times and a zone, as in `mon-fri 09:00-17:00 Europe/Berlin`; days and zone may be left out",
        "correct them",
    )
