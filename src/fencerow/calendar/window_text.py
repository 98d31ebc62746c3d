"""Reading windows of time, such as `sat,sun 22:00-02:00 Europe/Berlin` or `fri 22:00 - mon 06:00`.

A schedule starts nothing within its windows, and calls them maintenance windows. A limit lets jobs start within its
windows only, and calls them hours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

import fencerow.calendar.zones as zones
from fencerow.calendar.errors import InvalidWindow
from fencerow.db.text import shown

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY_DAY = frozenset(range(7))
DAY_MIN = 1440
WEEK_MIN = 7 * DAY_MIN
DATES_MAX = timedelta(days=366)
FORM = 'write "22:00-02:00", "mon-fri 12:00-13:00 Europe/Berlin", "fri 22:00 - mon 06:00" or "2026-12-24 - 2026-12-26"'
WEEKLY = re.compile(
    r"(?:(?P<days>[a-z]+(?:[-,][a-z]+)*|daily) +)?(?P<start>\d{1,2}:\d\d) ?- ?"
    r"(?:(?P<last>[a-z]+) +)?(?P<end>\d{1,2}:\d\d)(?: +(?P<zone>\S+))?",
    re.IGNORECASE | re.ASCII,
)
DATE = r"\d{4}-\d\d-\d\d"
DATES = re.compile(
    rf"(?P<first>{DATE})(?:[ T](?P<start>\d{{1,2}}:\d\d))?"
    rf"(?: - (?P<last>{DATE})(?:[ T](?P<end>\d{{1,2}}:\d\d))?)?(?: +(?P<zone>\S+))?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Weekly:
    """Hours that come back each week. The minutes count from the midnight of the day on which it starts."""

    days: frozenset[int]
    start_min: int
    end_min: int
    zone_name: str
    zone: tzinfo

    def text(self) -> str:
        """In one spelling."""
        first, end = _clock(self.start_min), _clock(self.end_min % DAY_MIN)
        if self.end_min == DAY_MIN:
            end = "24:00"
        elif self.end_min >= self.start_min + DAY_MIN:
            (day,) = self.days
            last = WEEKDAYS[(day + self.end_min // DAY_MIN) % 7]
            return f"{WEEKDAYS[day]} {first} - {last} {end} {self.zone_name}"
        days = "daily" if self.days == EVERY_DAY else ",".join(WEEKDAYS[day] for day in sorted(self.days))
        return f"{days} {first}-{end} {self.zone_name}"


@dataclass(frozen=True, slots=True)
class Dated:
    """A stretch of time that comes once: times of the wall."""

    start: datetime
    end: datetime
    zone_name: str
    zone: tzinfo

    def text(self) -> str:
        """In one spelling: the end is the first minute that is open again."""
        return f"{self.start:%Y-%m-%d %H:%M} - {self.end:%Y-%m-%d %H:%M} {self.zone_name}"


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said, and what they call it: `maintenance window` or `hours`."""

    text: str
    what: str

    def refused(self, why: str) -> InvalidWindow:
        return InvalidWindow(f"{self.what} {shown(self.text)} cannot be read", why, FORM)


def read(text: object, default_zone: str, what: str) -> Weekly | Dated:
    """The window that a text means. Raises InvalidWindow, which calls it `what`, or UnknownZone."""
    if not isinstance(text, str):
        raise InvalidWindow(f"{what} {shown(text)} cannot be read", "expected a text", FORM)
    said = Said(text, what)
    normal = " ".join(text.split())
    if match := WEEKLY.fullmatch(normal):
        return _weekly(said, match, match["zone"] or default_zone)
    if match := DATES.fullmatch(normal):
        return _dated(said, match, match["zone"] or default_zone)
    raise said.refused("it has no known form")


def _weekly(said: Said, match: re.Match[str], zone: str) -> Weekly:
    days = _days(said, match["days"])
    start, end = _minute(said, match["start"]), _minute(said, match["end"])
    if start == DAY_MIN:
        raise said.refused("it starts at 24:00; expected 00:00 to 23:59")
    if match["last"] is not None:
        if len(days) != 1:
            raise said.refused("it starts on several days; one that ends on a named day starts on one")
        (first,) = days
        end += (_day(said, match["last"]) - first) % 7 * DAY_MIN
        end += WEEK_MIN if end < start else 0
    elif end < start:
        end += DAY_MIN
    if end == start:
        raise said.refused("it ends when it starts; the whole day is written 00:00-24:00")
    return Weekly(days, start, end, zone, zones.zone(zone))


def _dated(said: Said, match: re.Match[str], zone: str) -> Dated:
    """Without a time, the last day belongs to it to its end."""
    start = _date(said, match["first"]) + timedelta(minutes=_minute(said, match["start"] or "0:00"))
    last = _date(said, match["last"] or match["first"])
    end = last + timedelta(minutes=_minute(said, match["end"] or "24:00"))
    if not timedelta() < end - start <= DATES_MAX:
        raise said.refused(f"it is from {start} to {end}; the end lies behind the start, by 366 days at most")
    return Dated(start, end, zone, zones.zone(zone))


def _days(said: Said, given: str | None) -> frozenset[int]:
    if given is None or given.casefold() == "daily":
        return EVERY_DAY
    found: set[int] = set()
    for part in given.split(","):
        first, _, last = part.partition("-")
        start = _day(said, first)
        found |= {(start + n) % 7 for n in range((_day(said, last or first) - start) % 7 + 1)}
    return frozenset(found)


def _day(said: Said, given: str) -> int:
    short = given.casefold()[:3]
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    if short in WEEKDAYS and full[WEEKDAYS.index(short)].startswith(given.casefold()):
        return WEEKDAYS.index(short)
    raise said.refused(f"it names the day {shown(given)}; expected {', '.join(WEEKDAYS)} or daily")


def _minute(said: Said, given: str) -> int:
    hour, minute = (int(part) for part in given.split(":"))
    if minute > 59 or hour * 60 + minute > DAY_MIN:
        raise said.refused(f"it names the time {given}; expected 00:00 to 24:00")
    return hour * 60 + minute


def _date(said: Said, given: str) -> datetime:
    try:
        return datetime.strptime(given, "%Y-%m-%d")  # noqa: DTZ007 a time of the wall
    except ValueError:
        raise said.refused(f"it names {given}; there is no such day") from None


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
