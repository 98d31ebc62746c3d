"""Races of the end of a period on PostgreSQL: with those who end jobs into it, and with those who revive out of it."""

from __future__ import annotations

from fencerow.core.model.state import State
from fencerow.errors import JobNotFound
from fencerow.retention.periods import (
    close_periods,
    detach_period,
    drop_period,
    finalize_period,
    make_period,
    periods,
    take_period,
)
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.people import FIRST, acting, revive, state, succeed, with_running

ANY_AGE_S = -1e9  # as if the clock had been far ahead when it was closed: jobs still end into the period

on_postgres = in_modes("plain", "held")


def one_period() -> Script:
    """A job runs, and the period into which it would end is open. Periods of the play before go first."""
    yield close_periods(State.SUCCEEDED, age_s=ANY_AGE_S)
    for period in (yield periods()):
        if period.stage in ("attached", "detaching"):
            yield (detach_period if period.stage == "attached" else finalize_period)(period.partition)
        yield drop_period(period.partition, period.id)
    yield make_period(State.SUCCEEDED, length_s=3600.0, lock=1)
    yield later(11.0)
    yield from with_running()()


def in_it() -> Script:
    yield from one_period()
    yield succeed(FIRST)


def ending() -> Script:
    yield close_periods(State.SUCCEEDED, age_s=ANY_AGE_S)
    period = yield take_period()
    yield detach_period(period.partition)
    yield drop_period(period.partition, period.id)


def ended_somewhere(story: Story) -> None:
    assert not isinstance(story.results["period"], Exception), story.results["period"]
    moved = story.results["worker"]
    assert not isinstance(moved, Exception), moved
    assert len(moved) == 1, "the success did not count"
    assert state(story) in ("succeeded", None)


succeed_period = Scenario(
    "succeed × the end of its period",
    one_period,
    [doing("worker", succeed(FIRST)), acting("period", ending)],
    ended_somewhere,
)


# In the held mode a job would end into the period after it was closed, and go with it unseen: that order is played
# in tests/retention/test_periods.py.
@in_modes("plain")
def test_a_job_ends_while_its_period_goes(race: Race) -> None:
    race(succeed_period)


@on_postgres
def test_it_finds_no_place_in_a_period_that_was_not_closed_first(race: Race) -> None:
    race.turns_red(succeed_period, Cut("succeed", ("      AND period.closed_at IS NULL\n", "")))


def gone_or_revived(story: Story) -> None:
    assert not isinstance(story.results["period"], Exception), story.results["period"]
    revived = story.results["someone"]
    if isinstance(revived, Exception):
        assert isinstance(revived, JobNotFound), revived
        assert state(story) is None
    else:
        assert state(story) == "queued"


revive_period = Scenario(
    "revive × the end of its period",
    in_it,
    [doing("someone", revive()), acting("period", ending)],
    gone_or_revived,
)


@on_postgres
def test_a_job_is_revived_or_goes_with_its_period(race: Race) -> None:
    race(revive_period)


def two_of_them(story: Story) -> None:
    failures = [each for each in story.results.values() if isinstance(each, Exception)]
    assert failures == []
    assert all(each.stage == "attached" and not each.closed for each in story.run(periods()))


def ending_if_mine() -> Script:
    yield close_periods(State.SUCCEEDED, age_s=ANY_AGE_S)
    period = yield take_period()
    if period is not None:
        yield detach_period(period.partition)
        yield drop_period(period.partition, period.id)


both_end = Scenario(
    "two workers end the same period",
    in_it,
    [acting("first", ending_if_mine), acting("second", ending_if_mine)],
    two_of_them,
)


@on_postgres
def test_one_of_two_ends_a_period(race: Race) -> None:
    race(both_end)


@on_postgres
def test_both_would_try_without_the_mark(race: Race) -> None:
    race.turns_red(
        both_end,
        Cut("take_period", ("closed.taken_at IS NULL OR", "true OR")),
    )
