"""Races for jobs that were written while the clock stood ahead: each is moved back once, whoever else wants it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from fencerow.clocks.ahead import FIRST as FROM_THE_FIRST
from fencerow.clocks.ahead import AheadJob, AheadPart, find_ahead, move_back
from fencerow.core.store import store
from fencerow.db.due import Due
from fencerow.db.run import Operation
from fencerow_proof.arena.actor import Actor, Script, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LATE_US,
    SECOND,
    acting,
    cancel,
    claim,
    new_job,
    state,
    with_jobs,
)

HOUR_S, DELAY_S = 3600.0, 300.0

Found = list[AheadJob]
Setup = Generator[Operation[Any], Any, Found]


def submitted_ahead() -> Setup:
    yield later(HOUR_S)
    yield from with_jobs(new_job(delay_s=DELAY_S))()
    yield later(-HOUR_S)
    part: AheadPart = yield find_ahead(FROM_THE_FIRST, reached_us=0, limit=10)
    return part.ahead


def retried_ahead() -> Setup:
    """Only its timeline tells when its delay began."""
    yield from with_jobs(new_job())()
    yield claim(FIRST)
    yield later(HOUR_S)
    again = store.Requeue(id=JOB, attempt=1, kind="retried", delay_s=DELAY_S, failures=1)
    yield store.requeue([again], holder=FIRST)
    yield later(-HOUR_S)
    part: AheadPart = yield find_ahead(FROM_THE_FIRST, reached_us=0, limit=10)
    return part.ahead


def moving(found: Found) -> Script:
    return (yield move_back(found, reached_us=0, actor="w"))


def due_in_s(story: Story) -> float:
    found = story.run(store.read([JOB]))[JOB]
    return (found.run_at_us - story.run(store.clock())) / 1e6


def moved_once(story: Story) -> None:
    assert sum(len(story.results[name]) for name in ("one", "other")) == 1, "exactly one moved it"
    assert DELAY_S - 60 < due_in_s(story) <= DELAY_S, "and its delay is as long as it was"


TWICE = {
    setup: Scenario(
        f"move_back × move_back of a job {setup.__name__.replace('_', ' ')}",
        setup,
        [Actor("one", moving), Actor("other", moving)],
        moved_once,
    )
    for setup in (submitted_ahead, retried_ahead)
}


@pytest.mark.parametrize("setup", TWICE)
@named(71)
def test_two_that_look_move_a_job_once(race: Race, setup: Any) -> None:
    race(TWICE[setup])


SEEN = Cut(
    "move_back",
    ("fencerow.us(job.run_at) = seen.run_at_us", "true"),
    ("job.run_at = json_extract(seen.value, '$[1]')", "true"),
)
AHEAD = Cut(
    "move_back",
    ("> known.reached + INTERVAL '1 second'", "IS NOT NULL"),
    ("> known.reached + 1000000", "IS NOT NULL"),
)


@in_modes("held")
@named(71)
def test_it_is_moved_twice_where_only_its_times_say_so(race: Race) -> None:
    """The line in its timeline is newer than what the statement sees."""
    race.turns_red(TWICE[retried_ahead], SEEN)


@pytest.mark.parametrize("setup", TWICE)
@named(71)
def test_it_is_moved_twice_where_nothing_says_so(race: Race, setup: Any) -> None:
    race.turns_red(TWICE[setup], SEEN, AHEAD)


def cancelling() -> Script:
    return (yield cancel())


def cancelled(story: Story) -> None:
    assert state(story) == "cancelled"


against_cancel = Scenario(
    "move_back × cancel", submitted_ahead, [Actor("one", moving), acting("person", cancelling)], cancelled
)


@named(71)
def test_what_is_cancelled_stays_cancelled(race: Race) -> None:
    race(against_cancel)


def carrying_on() -> Script:
    """A worker that has seen the clock where it stood, and a little further."""
    jobs = yield store.claim(
        "mail", [store.Mark(0)], holder=SECOND, names=["send"], limit=1, margin_s=10.0, due=Due(LATE_US, 0)
    )
    return [job.id for job in jobs]


def runs_or_waits(story: Story) -> None:
    claimed, moved = story.results["second"], story.results["one"]
    assert (state(story) == "running") == (claimed == [JOB])
    if not claimed:
        assert len(moved) == 1
    elif not moved:
        assert due_in_s(story) > HOUR_S, "what runs is not moved"


against_claim = Scenario(
    "move_back × claim by the time that was carried on",
    submitted_ahead,
    [Actor("one", moving), acting("second", carrying_on)],
    runs_or_waits,
)


@named(71)
def test_a_claim_and_a_move_have_one_order(race: Race) -> None:
    race(against_claim)
