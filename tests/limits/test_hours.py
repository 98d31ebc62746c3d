"""Hours of limits as arithmetic, against a slow model that is obviously right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencerow.calendar.window_text import DAY_MIN, Weekly
from fencerow.limits.hours import open_until, parsed

T0 = 1_800_000_000_000_000
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Cairo",
)
MINUTE = timedelta(minutes=1)


def open_by_the_wall(opening: Weekly, at: datetime) -> bool:
    """Whether a clock on the wall shows an hour at which it is open; a day goes on past midnight."""
    local = at.astimezone(opening.zone)
    minute, day = local.hour * 60 + local.minute, local.weekday()
    yesterday = (day - 1) % 7
    return (day in opening.days and opening.start_min <= minute < opening.end_min) or (
        yesterday in opening.days and minute < opening.end_min - DAY_MIN
    )


def shifts(zone: ZoneInfo, at: datetime) -> bool:
    """Whether the zone's clock jumps within a day and a half of this."""
    around = [(at + timedelta(hours=hours)).astimezone(zone).utcoffset() for hours in range(-36, 37, 6)]
    return len(set(around)) > 1


@settings(max_examples=100)
@given(
    st.sets(st.integers(0, 6), min_size=1),
    st.integers(0, 1439),
    st.integers(0, 1440),
    st.sampled_from(ZONES),
    st.integers(0, 9 * 366 * 1440),
)
def test_hours_are_open_when_the_wall_clock_says_so(
    days: set[int], opens: int, closes: int, zone: str, minute: int
) -> None:
    end = closes if closes > opens else closes + DAY_MIN
    opening = Weekly(frozenset(days), opens, end, zone, ZoneInfo(zone))
    at = datetime(2024, 1, 1, tzinfo=UTC) + minute * MINUTE
    now_us = round(at.timestamp() * 1e6)

    is_open, changes_us = open_until([opening], now_us)

    if not shifts(ZoneInfo(zone), at):
        assert is_open == open_by_the_wall(opening, at)
    if changes_us is not None:
        assert changes_us > now_us
        assert open_until([opening], changes_us)[0] != is_open
        assert open_until([opening], changes_us - 1)[0] == is_open


@pytest.mark.parametrize(
    ("text", "opens", "closes"),
    [
        (
            "02:30-05:00 Europe/Berlin",
            "2026-03-29T01:00",
            "2026-03-29T03:00",
        ),  # the gap's end is its beginning
        ("01:00-02:30 Europe/Berlin", "2026-03-29T00:00", "2026-03-29T01:00"),
        ("02:30-05:00 Europe/Berlin", "2026-10-25T00:30", "2026-10-25T04:00"),  # the first 2:30 of two
        ("01:00-02:30 Europe/Berlin", "2026-10-24T23:00", "2026-10-25T01:30"),  # the second
        ("22:00-06:00 Europe/Berlin", "2026-10-24T20:00", "2026-10-25T05:00"),
        (
            "22:00-02:00 Europe/Berlin",
            "2026-10-24T20:00",
            "2026-10-25T00:00",
        ),  # the first: no second hour is shown
        ("23:30-00:30 Pacific/Apia", "2026-01-10T10:30", "2026-01-10T11:30"),
    ],
)
def test_hours_around_a_change_of_the_clock_begin_and_end_where_the_page_says(
    text: str, opens: str, closes: str
) -> None:
    first, last = (
        round(datetime.fromisoformat(f"{each}+00:00").timestamp() * 1e6) for each in (opens, closes)
    )

    assert open_until([parsed(text)], first - 1) == (False, first)
    assert open_until([parsed(text)], first) == (True, last)
    assert open_until([parsed(text)], last)[0] is False


def test_hours_that_touch_are_one_and_those_that_never_end_say_so() -> None:
    week = [parsed("mon-fri 00:00-24:00"), parsed("sat,sun 00:00-24:00")]

    assert open_until(week, T0) == (True, None)


def test_hours_of_a_date_open_once_however_far_away_it_is() -> None:
    christmas = [parsed("2027-12-24 - 2027-12-26 Europe/Berlin")]  # T0 is in January
    opens_us, closes_us = (
        round(datetime(2027, 12, day, 23, tzinfo=UTC).timestamp() * 1e6) for day in (23, 26)
    )

    assert open_until(christmas, T0) == (False, opens_us)
    assert open_until(christmas, opens_us) == (True, closes_us)
    assert open_until(christmas, closes_us) == (False, None)
