"""Maintenance windows: what they say, when they are closed, and where clocks are changed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencerow.errors import InvalidWindow, UnknownZone
from fencerow.schedules.spec import Spec
from fencerow.schedules.windows import MaintenanceWindows
from tests.schedules.instants import us, utc
from tests.schedules.kinds import KINDS
from tests.schedules.walk import EPOCH, walk

MINUTE = us(60)


def test_windows_swallow_a_schedule_only_if_each_of_its_fires_falls_into_one() -> None:
    def swallowed(cron: str, *windows: str, tz: str = "UTC") -> bool:
        times = Spec.parse({"cron": cron, "tz": tz})
        return MaintenanceWindows.parse(windows).swallow(lambda after_us: times.next_after(after_us, ""))

    assert swallowed("*/5 9-10 * * *", "09:00-11:00") and swallowed("0 9 * * sat", "sat,sun 00:00-24:00")
    assert not swallowed("*/5 9-11 * * *", "09:00-11:00") and not swallowed(
        "0 9 * * *", "sat,sun 00:00-24:00"
    )
    assert not swallowed("0 9 25 12 *", "sat,sun 00:00-24:00"), "some year it is no weekend"
    assert not swallowed("30 9 * * *", "08:00-09:00", tz="Europe/Berlin"), "only in winter: at 08:30 in UTC"
    assert not swallowed("0 10 24 12 *", "2026-12-24"), "windows of a date end"


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("22:00-02:00", "daily 22:00-02:00 UTC"),
        ("daily 7:00 - 7:20", "daily 07:00-07:20 UTC"),
        ("mon-fri 12:00-13:00 Europe/Berlin", "mon,tue,wed,thu,fri 12:00-13:00 Europe/Berlin"),
        ("Sunday,sat-sun 00:00-24:00", "sat,sun 00:00-24:00 UTC"),
        ("fri-mon 01:00-02:00", "mon,fri,sat,sun 01:00-02:00 UTC"),
        ("fri 22:00 - mon 06:00", "fri 22:00 - mon 06:00 UTC"),
        ("fri 10:00 - sat 10:00", "fri 10:00 - sat 10:00 UTC"),
        ("mon 10:00 - mon 09:00", "mon 10:00 - mon 09:00 UTC"),
        ("sat 00:00 - sun 00:00", "sat 00:00-24:00 UTC"),
        ("2026-12-24", "2026-12-24 00:00 - 2026-12-25 00:00 UTC"),
        ("2026-12-24 - 2026-12-26 Asia/Tokyo", "2026-12-24 00:00 - 2026-12-27 00:00 Asia/Tokyo"),
        ("2026-12-24T18:00 - 2026-12-27 06:00", "2026-12-24 18:00 - 2026-12-27 06:00 UTC"),
    ],
)
def test_a_window_has_one_spelling(text: str, spelling: str) -> None:
    windows = MaintenanceWindows.parse([text])

    assert windows.document() == [spelling]
    assert MaintenanceWindows.parse([spelling], "Asia/Tokyo") == windows


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["00:00-24:00"], "never end"),
        (["00:00-12:00", "12:00-24:00"], "never end"),
        (["mon 00:00 - thu 00:00", "thu 00:00 - mon 00:00"], "never end"),
        (["00:00-24:00 Asia/Tokyo", "2026-12-24"], "never end"),
        (["00:00-00:00"], "ends when it starts"),
        (["mon 10:00 - mon 10:00"], "ends when it starts"),
        (["2026-12-24 10:00 - 2026-12-24 10:00"], "the end lies behind the start"),
        (["2026-12-26 - 2026-12-24"], "the end lies behind the start"),
        (["2026-01-01 - 2028-01-01"], "366 days at most"),
        (["2026-02-30"], "there is no such day"),
        (["mon,tue 22:00 - fri 02:00"], "starts on several days"),
        (["funday 1:00-2:00"], "names the day 'funday'"),
        (["25:00-26:00"], "names the time 25:00"),
        (["12:60-13:00"], "names the time 12:60"),
        (["24:00-01:00"], "starts at 24:00"),
        (["at night"], "cannot be read"),
        ([22], "expected a text"),
        ("22:00-02:00", "expected a list"),
        (["1:00-2:00"] * 51, "at most 50"),
    ],
)
def test_what_cannot_work_is_refused(texts: list[object], said: str) -> None:
    with pytest.raises(InvalidWindow) as refused:
        MaintenanceWindows.parse(texts)

    assert said in str(refused.value)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(UnknownZone):
        MaintenanceWindows.parse(["22:00-02:00 Europe/Berln"])


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_starts() -> None:
    windows = MaintenanceWindows.parse(["fri 22:00-02:00"])
    friday, saturday = utc(2026, 11, 27), utc(2026, 11, 28)

    assert [windows.closed(friday + us(3600 * hour)) for hour in (1, 21, 22, 23)] == [
        False,
        False,
        True,
        True,
    ]
    assert [windows.closed(saturday + us(3600 * hour)) for hour in (0, 1, 2, 22)] == [
        True,
        True,
        False,
        False,
    ]
    assert windows.opens_after(friday + us(3600 * 22)) == saturday + us(7200)


def test_it_is_closed_from_its_first_microsecond_to_its_last() -> None:
    windows = MaintenanceWindows.parse(["07:00-07:20"])
    start, end = utc(2026, 11, 27, 7), utc(2026, 11, 27, 7, 20)

    assert [windows.closed(at) for at in (start - 1, start, end - 1, end)] == [False, True, True, False]
    assert [windows.opens_after(at) for at in (start - 1, start, end - 1, end)] == [start - 1, end, end, end]


def test_windows_that_touch_are_one() -> None:
    windows = MaintenanceWindows.parse(["22:00-24:00", "00:00-04:00", "03:00-05:00 Europe/Berlin"])

    assert windows.opens_after(utc(2026, 7, 1, 23)) == utc(2026, 7, 2, 4)
    assert not windows.closed(utc(2026, 7, 2, 4))
    assert MaintenanceWindows().opens_after(5) == 5 and not MaintenanceWindows().closed(5)


def test_dates_close_once() -> None:
    windows = MaintenanceWindows.parse(["2026-12-24 - 2026-12-26"], "Europe/Berlin")

    assert windows.opens_after(utc(2026, 12, 23, 23)) == utc(2026, 12, 26, 23)
    assert not windows.closed(utc(2026, 12, 23, 22, 59)) and not windows.closed(utc(2027, 12, 24, 12))


def hull(walked: list[tuple[datetime, datetime]], start_min: int, end_min: int) -> set[datetime]:
    """Each minute from the first to the last at which the wall shows a time of the window, for each day's window."""
    closed: set[datetime] = set()
    days = {shown.replace(hour=0, minute=0) + timedelta(days=back) for _, shown in walked for back in (-1, 0)}
    for day in days:
        start, end = day + timedelta(minutes=start_min), day + timedelta(minutes=end_min)
        inside = [number for number, (_, shown) in enumerate(walked) if start <= shown < end]
        if inside:
            closed |= {walked[number][0] for number in range(inside[0], inside[-1] + 1)}
    return closed


SOME = [KINDS[number] for number in (0, 1, 3, 8, 10)]
SPANS = [
    ("00:00-01:30", 0, 90),
    ("01:45-02:15", 105, 135),
    ("02:10-02:20", 130, 140),
    ("22:30-03:00", 1350, 1620),
]


@pytest.mark.parametrize(("zone", "change"), SOME, ids=[f"{zone} {change:%Y-%m}" for zone, change in SOME])
def test_windows_are_closed_as_a_walk_by_the_minute_says(zone: str, change: datetime) -> None:
    walked = walk(zone, change)[::5]

    for text, start_min, end_min in SPANS:
        windows = MaintenanceWindows.parse([text], zone)
        found = {each for each, _ in walked if windows.closed((each - EPOCH) // timedelta(microseconds=1))}
        assert found == hull(walked, start_min, end_min), text


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda day, start, length, zone: (
                f"{day} {start // 60:02}:{start % 60:02}-"
                f"{(start + length) // 60 % 24:02}:{(start + length) % 60:02} {zone}"
            ),
            st.sampled_from(["daily", "mon", "sat,sun"]),
            st.integers(0, 1439),
            st.integers(1, 400),
            st.sampled_from(["UTC", "Europe/Berlin", "America/Havana"]),
        ),
        max_size=3,
    ),
    st.integers(utc(2026, 1, 1), utc(2027, 1, 1)),
)
def test_it_opens_at_the_first_instant_that_is_open(texts: list[str], instant: int) -> None:
    windows = MaintenanceWindows.parse(texts)

    opens = windows.opens_after(instant)

    assert not windows.closed(opens)
    assert (opens == instant) is not windows.closed(instant)
    assert all(windows.closed(at) for at in range(instant, opens, 7 * MINUTE))
    assert opens == instant or windows.closed(opens - 1)
