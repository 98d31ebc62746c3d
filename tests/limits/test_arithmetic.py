"""Rates and breakers as arithmetic, each against a slow model that is obviously right."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fencerow.limits.breaking import BreakerState, Breaking, FailedAttempt, started
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
        self.since = 0

    def is_open(self, now: int) -> bool:
        return self.opened is not None and now < self.opened + self.breaking.stop_us

    def starts(self, job: str) -> None:
        if self.opened is not None:
            self.trials.add(job)

    def ends(self, job: str, how: str, now: int, began: int) -> None:
        was_trial = job in self.trials
        self.trials.discard(job)
        since = self.since if self.opened is None else self.opened + self.breaking.stop_us
        if self.is_open(now):
            return
        if how == "failed" and began >= since:
            self.failed.append(now)
            lately = [each for each in self.failed if each > now - self.breaking.within_us]
            if self.opened is not None or len(lately) >= self.breaking.failures:
                self.opened, self.trials, self.failed = now, set(), []
        elif how == "succeeded" and was_trial:
            self.opened, self.trials, self.since = None, set(), since

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
    slowly, state, now = Slowly(breaking), BreakerState(), T0
    running: list[str] = []
    began: dict[str, int] = {}
    for number, (later, step, which) in enumerate(steps):
        now += later
        failed: list[FailedAttempt] = []
        succeeded = False
        if step != "start" and running:
            job = running.pop(which % len(running))
            failed = [FailedAttempt(now, began[job])] if step == "failed" else []
            succeeded = step == "succeeded" and job in state.trials
            slowly.ends(job, step, now, began[job])
        state = breaking.seen(state, now, failed=failed, trying=running, succeeded=succeeded)

        room = breaking.room(state, now)

        assert room == slowly.room(now)
        if step == "start" and room != 0:
            running.append(str(number))
            began[str(number)] = now
            state = started(state, [str(number)])
            slowly.starts(str(number))


def test_a_breaker_that_was_opened_before_the_clock_went_back_stays_open_no_longer_than_it_says() -> None:
    breaking = Breaking(1, 10, 1_000, 1)

    def look(state: BreakerState, now: int, *failed_us: int) -> BreakerState:
        failed = [FailedAttempt(each, each) for each in failed_us]
        return breaking.seen(state, now, failed=failed, trying=(), succeeded=False)

    state = look(BreakerState(), T0, T0)
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
    opened = breaking.seen(BreakerState(), T0, failed=[FailedAttempt(T0, T0)], trying=(), succeeded=False)
    straggler = FailedAttempt(T0 + 4_000, T0 - 1)

    trying = breaking.seen(opened, T0 + 5_000, failed=[straggler], trying=(), succeeded=False)
    assert breaking.room(trying, T0 + 5_000) == 1

    closed = breaking.seen(trying, T0 + 6_000, failed=[straggler], trying=(), succeeded=True)
    later = breaking.seen(closed, T0 + 6_000, failed=[straggler], trying=(), succeeded=False)
    assert breaking.room(later, T0 + 6_000) is None, "it is closed, and stays so"
    mine = FailedAttempt(T0 + 6_000, T0 + 5_000)
    assert (
        breaking.room(breaking.seen(later, T0 + 6_000, failed=[mine], trying=(), succeeded=False), T0 + 6_000)
        == 0
    )
