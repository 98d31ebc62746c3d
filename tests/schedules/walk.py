"""A walk through the 48 hours around a change of clocks, minute by minute, that knows nothing of our rules' code.

`python -m tests.schedules.walk FILE` walks around every change of every zone from 2024 to 2032 and writes what it
saw; with `FILE 10` around one in ten. `test_changes.py` walks around some of them.
"""

from __future__ import annotations

import json
import sys
import time
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fencerow.calendar.zones import tzdata_version
from fencerow.schedules.spec import Spec

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
FIRST, LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2033, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EVERY_MINUTE, EVERY_HOUR = frozenset(range(60)), frozenset(range(24))
EVERY_WEEKDAY, EVERY_DAY = frozenset(range(7)), frozenset(range(1, 32))


@dataclass(frozen=True)
class Sample:
    """An expression, and by hand which minutes, hours, weekdays (Monday is 0) and days it names."""

    text: str
    minutes: frozenset[int] = EVERY_MINUTE
    hours: frozenset[int] = EVERY_HOUR
    weekdays: frozenset[int] = EVERY_WEEKDAY
    days: frozenset[int] = EVERY_DAY
    named: bool = False

    def fits(self, shown: datetime) -> bool:
        return (
            shown.minute in self.minutes
            and shown.hour in self.hours
            and shown.weekday() in self.weekdays
            and shown.day in self.days
        )


def _some(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


SAMPLES = (
    Sample("30 2 * * *", _some(30), _some(2), named=True),
    Sample("0 0 * * *", _some(0), _some(0), named=True),
    Sample("0,15,30,45 0,1,2,3,22,23 * * *", _some(0, 15, 30, 45), _some(0, 1, 2, 3, 22, 23), named=True),
    Sample("7 0-23 * * *", _some(7)),
    Sample("30 1,2 * * 0,6", _some(30), _some(1, 2), _some(5, 6), named=True),
    Sample("*/20 * * * *", _some(0, 20, 40)),
    Sample("5 * * * *", _some(5)),
    Sample("*/30 0,2,3,23 * * *", _some(0, 30), _some(0, 2, 3, 23), named=True),
    Sample("10 */2 * * *", _some(10), frozenset(range(0, 24, 2)), named=True),
    Sample("*/15 0 * * 0", _some(0, 15, 30, 45), _some(0), _some(6), named=True),
    Sample("*/15 23 1,28-31 * *", _some(0, 15, 30, 45), _some(23), days=_some(1, 28, 29, 30, 31), named=True),
)
MINUTELY = (
    Sample("* * * * *"),
    Sample("0-59 1-23 * * *", hours=EVERY_HOUR - {0}, named=True),
)


def changes(name: str, first: datetime = FIRST, last: datetime = LAST) -> Iterator[datetime]:
    """Each instant from which the zone has another offset; looked for hour by hour, then minute by minute."""
    zone = zoneinfo.ZoneInfo(name)
    was = first.astimezone(zone).utcoffset()
    hour = first
    while hour < last:
        if (hour + HOUR).astimezone(zone).utcoffset() != was:
            minute = next(
                hour + n * MINUTE
                for n in range(1, 61)
                if (hour + n * MINUTE).astimezone(zone).utcoffset() != was
            )
            yield minute
            was = (hour + HOUR).astimezone(zone).utcoffset()
        hour += HOUR


def walk(name: str, change: datetime) -> list[tuple[datetime, datetime]]:
    """Each minute of the 48 hours, and what the wall shows then."""
    zone = zoneinfo.ZoneInfo(name)
    minutes = [change - DAY + n * MINUTE for n in range(2 * 24 * 60 + 1)]
    return [(each, each.astimezone(zone).replace(tzinfo=None)) for each in minutes]


def expected(sample: Sample, walked: list[tuple[datetime, datetime]]) -> list[datetime]:
    """What should fire behind the first minute of the walk, by the rules' own words."""
    (start, first), (_, last) = walked[0], walked[-1]
    if not sample.named:
        return [each for each, shown in walked if each > start and sample.fits(shown)]
    found = set()
    firsts: dict[datetime, datetime] = {}
    for each, shown in walked:
        firsts.setdefault(shown, each)
    shown = first + MINUTE
    while shown <= last:
        if sample.fits(shown):
            found.add(firsts[shown] if shown in firsts else _behind(shown, walked))
        shown += MINUTE
    return sorted(found)


def _behind(skipped: datetime, walked: list[tuple[datetime, datetime]]) -> datetime:
    return min(each for each, shown in walked if shown > skipped)


def fired(spec: Spec, walked: list[tuple[datetime, datetime]]) -> list[datetime]:
    start, end = walked[0][0], walked[-1][0]
    return [EPOCH + timedelta(microseconds=us) for us in spec.fires(_us(start), _us(end), "", 10_000)]


def wrong(name: str, change: datetime, samples: tuple[Sample, ...], every: int = 7) -> list[str]:
    """Where the product departs from the walk: in the chain of fires, or asked from any minute in between."""
    walked = walk(name, change)
    found = []
    for sample in samples:
        spec = Spec.parse({"cron": sample.text, "tz": name})
        wanted = expected(sample, walked)
        if fired(spec, walked) != wanted:
            found.append(f"{name} {change:%Y-%m-%d %H:%M}: {sample.text}")
            continue
        for each, _ in walked[::every]:
            later = next((fire for fire in wanted if fire > each), None)
            if later is not None and spec.next_after(_us(each), "") != _us(later):
                found.append(f"{name} from {each:%Y-%m-%d %H:%M}: {sample.text}")
                break
    return found


def _us(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(microseconds=1)


def main(file: str, one_in: str = "1") -> int:
    """Changes of one instant between the same two offsets are walked once, whatever the zone is called."""
    began, total, faults = time.monotonic(), 0, []
    distinct: dict[tuple[datetime, object, object], str] = {}
    names = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
    for name in names:
        zone = zoneinfo.ZoneInfo(name)
        for change in changes(name):
            total += 1
            before, after = (change - MINUTE).astimezone(zone), change.astimezone(zone)
            distinct.setdefault((change, before.utcoffset(), after.utcoffset()), name)
    distinct = dict(list(distinct.items())[:: int(one_in)])
    for (change, _, _), name in distinct.items():
        faults += wrong(name, change, SAMPLES)
    minutely = {(before, after): (name, change) for (change, before, after), name in distinct.items()}
    for name, change in minutely.values():
        faults += wrong(name, change, MINUTELY, every=1)
    told = {
        "tzdata": tzdata_version(),
        "zones": len(names),
        "changes": total,
        "distinct_changes": len(distinct),
        "kinds_of_change_walked_minutely": len(minutely),
        "minutes_walked": len(distinct) * (2 * 24 * 60 + 1),
        "expressions": [sample.text for sample in (*SAMPLES, *MINUTELY)],
        "wrong": faults,
        "seconds": round(time.monotonic() - began),
    }
    Path(file).write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
