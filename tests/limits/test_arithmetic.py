"""Rates, breakers and hours as arithmetic, each against a slow model that is obviously right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencerow.limits.breaking import CLOSED, BreakerState, Breaking, started
from fencerow.limits.hours import Opening, open_until, parsed
from fencerow.limits.pacing import Pace

T0 = 1_800_000_000_000_000
paces = st.builds(Pace, interval_us=st.integers(100, 5_000_000), burst=st.integers(1, 20))
asks = st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(0, 30)), max_size=30)


def too_close(starts: list[int], pace: Pace) -> bool:
    """Whether any stretch of time holds more starts than the burst and what the rate adds to it."""
    return any(
        (last - first + 1 - pace.burst) * pace.interval_us > starts[last] - starts[first]
        for first in range(len(starts))
        for last in range(first + 1, len(starts))
    )


@given(paces, asks)
def test_no_stretch_of_time_holds_more_starts_than_the_rate_allows(
    pace: Pace, asked: list[tuple[int, int]]
) -> None:
    tat, now, starts = 0, T0, []
    for later, wanted in asked:
        now += later
        found = pace.room(tat, now, at_most=wanted)
        tat = pace.taken(tat, now, found) if found else tat
        starts += [now] * found

    assert not too_close(starts, pace)


@given(paces, asks)
def test_a_rate_lets_through_what_a_bucket_of_tokens_lets_through(
    pace: Pace, asked: list[tuple[int, int]]
) -> None:
    tat, now, tokens = 0, T0, Fraction(pace.burst)
    for later, wanted in asked:
        now += later
        tokens = min(Fraction(pace.burst), tokens + Fraction(later, pace.interval_us))

        found = pace.room(tat, now, at_most=wanted)

        assert found == min(wanted, int(tokens))
        tokens -= found
        tat = pace.taken(tat, now, found) if found else tat
        if tokens < 1:
            again = pace.start_us(tat, now)
            assert again == now + -(-int((1 - tokens) * pace.interval_us) // 1)


@given(paces, st.integers(0, 40), st.integers(1, 10**12))
def test_a_clock_that_goes_back_stops_a_rate_for_one_interval_at_most(
    pace: Pace, taken: int, back: int
) -> None:
    tat = pace.taken(0, T0, pace.room(0, T0, at_most=taken))

    now = T0 - back
    tat = pace.bounded(tat, now)  # what a look keeps
    first = pace.start_us(tat, now)

    assert now <= first <= now + pace.interval_us
    assert pace.room(pace.bounded(tat, first), first, at_most=1) == 1, "the next look lets one through"


breakers = st.builds(
    Breaking,
    failures=st.integers(1, 4),
    within_us=st.integers(1, 50),
    stop_us=st.integers(1, 50),
    trials=st.integers(1, 3),
)


class Slowly:
    """A breaker that remembers everything that happened, and decides by all of it each time."""

    def __init__(self, breaking: Breaking) -> None:
        self.breaking = breaking
        self.failed: list[int] = []
        self.opened: int | None = None
        self.trials: set[str] = set()

    def is_open(self, now: int) -> bool:
        return self.opened is not None and now < self.opened + self.breaking.stop_us

    def starts(self, job: str) -> None:
        if self.opened is not None:
            self.trials.add(job)

    def ends(self, job: str, how: str, now: int) -> None:
        was_trial = job in self.trials
        self.trials.discard(job)
        if self.is_open(now):
            return
        if how == "failed":
            self.failed.append(now)
            lately = [each for each in self.failed if each > now - self.breaking.within_us]
            if self.opened is not None or len(lately) >= self.breaking.failures:
                self.opened, self.trials, self.failed = now, set(), []
        elif how == "succeeded" and was_trial:
            self.opened, self.trials = None, set()

    def room(self, now: int) -> int | None:
        if self.opened is None:
            return None
        return 0 if self.is_open(now) else self.breaking.trials - len(self.trials)


ENDS = ("failed", "failed", "succeeded", "cancelled")


@given(
    breakers, st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["start", *ENDS]), st.integers(0, 9)))
)
def test_a_breaker_stops_and_tries_as_the_slow_one_does(
    breaking: Breaking, steps: list[tuple[int, str, int]]
) -> None:
    slowly, state, now = Slowly(breaking), CLOSED, T0
    running: list[str] = []
    for number, (later, step, which) in enumerate(steps):
        now += later
        failed_us: list[int] = []
        succeeded = False
        if step != "start" and running:
            job = running.pop(which % len(running))
            failed_us = [now] if step == "failed" else []
            succeeded = step == "succeeded" and job in state.trials
            slowly.ends(job, step, now)
        state = breaking.seen(state, now, failed_us=failed_us, trying=running, succeeded=succeeded)

        room = breaking.room(state, now)

        assert room == slowly.room(now)
        if step == "start" and room != 0:
            running.append(str(number))
            state = started(state, [str(number)])
            slowly.starts(str(number))


def test_a_breaker_that_was_opened_before_the_clock_went_back_stays_open_no_longer_than_it_says() -> None:
    breaking = Breaking(1, 10, 1_000, 1)

    def look(state: BreakerState, now: int, *failed_us: int) -> BreakerState:
        return breaking.seen(state, now, failed_us=failed_us, trying=(), succeeded=False)

    state = look(CLOSED, T0, T0)
    assert breaking.room(look(state, T0 + 999), T0 + 999) == 0
    assert breaking.room(look(state, T0 + 1_000), T0 + 1_000) == 1
    back = T0 - 10**9
    state = look(state, back)
    assert breaking.room(state, back) == 0
    state = look(state, back + 1_000)
    assert breaking.room(state, back + 1_000) == 1
    assert breaking.room(look(state, back + 1_001, back + 1_001), back + 1_001) == 0, (
        "a trial's failure counts"
    )


def test_failures_of_jobs_that_ran_when_it_opened_are_told_late_and_change_nothing() -> None:
    breaking = Breaking(1, 10, 1_000, 1)
    opened = breaking.seen(CLOSED, T0, failed_us=[T0], trying=(), succeeded=False)

    late = breaking.seen(opened, T0 + 5_000, failed_us=[T0 + 999], trying=(), succeeded=False)

    assert breaking.room(late, T0 + 5_000) == 1


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


def open_by_the_wall(opening: Opening, at: datetime) -> bool:
    """Whether a clock on the wall shows an hour at which it is open; a day goes on past midnight."""
    local = at.astimezone(ZoneInfo(opening.zone))
    minute, day = local.hour * 60 + local.minute, local.weekday()
    if opening.closes > opening.opens:
        return day in opening.days and opening.opens <= minute < opening.closes
    yesterday = (day - 1) % 7
    return (day in opening.days and minute >= opening.opens) or (
        yesterday in opening.days and minute < opening.closes
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
    opening = Opening(frozenset(days), opens, closes, zone)
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
    assert parsed("fri-mon 09:00-17:00").days == frozenset({4, 5, 6, 0})
    assert parsed("09:00-17:00") == Opening(frozenset(range(7)), 540, 1020, "UTC")
