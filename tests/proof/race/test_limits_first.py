"""Races for a limit of a queue that comes while claims are under way, and for suspects that it bounds, too."""

from __future__ import annotations

from typing import Any

from fencerow.core.store import store
from fencerow.limits.limits import bound_claim, define, remove
from fencerow_proof.arena.actor import Actor, Script
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    SECOND,
    THIRD_JOB,
    claim,
    crash,
    new_job,
    state,
    succeed,
    with_jobs,
    with_running,
)
from tests.proof.race.test_limits import ONE, bounded

JOBS = (JOB, OTHER_JOB, THIRD_JOB)


def taking_plainly(_: Any) -> Script:
    """It began before anybody bounded the queue."""
    return [job.id for job in (yield claim(FIRST))]


def defining_and_taking(_: Any) -> Script:
    yield define(ONE, actor=None, reason=None)
    return [job.id for job in (yield bounded(SECOND)).jobs]


def one_runs(story: Story) -> None:
    running = [each for each in JOBS if state(story, each) == "running"]
    assert len(running) == 1, "more run than the limit lets through, or nobody used it"


first = Scenario(
    "plain claim × the first definition of a limit",
    with_jobs(*(new_job(each) for each in JOBS)),
    [Actor("plain", taking_plainly), Actor("second", defining_and_taking)],
    one_runs,
)
UNLOCKED = Cut(
    "lock_claims", ("LOCK TABLE fencerow.limit_states, fencerow.queues IN EXCLUSIVE MODE", "SELECT 1")
)
UNSHARED = Cut("claim", ("                FOR KEY SHARE)", ")"))


@named(66)
def test_the_first_limit_of_a_queue_counts_what_was_being_claimed(race: Race) -> None:
    race(first)


@named(66)
@in_modes("held")
def test_it_does_not_without_a_wait_for_the_claims_under_way(race: Race) -> None:
    race.turns_red(first, UNLOCKED)


@named(66)
@in_modes("held")
def test_it_does_not_where_claims_do_not_say_that_they_are_under_way(race: Race) -> None:
    race.turns_red(first, UNSHARED)


def bounded_before() -> Script:
    yield from with_jobs(*(new_job(each) for each in JOBS))()
    yield define(ONE, actor=None, reason=None)


def removing_and_defining_again(_: Any) -> Script:
    yield remove("queue:mail", revision=1)
    yield define(ONE, actor=None, reason=None)
    return [job.id for job in (yield bounded(SECOND, wanted=1)).jobs]


def taking_one(_: Any) -> Script:
    return [job.id for job in (yield bounded(FIRST, wanted=1)).jobs]


again = Scenario(
    "limited claim × the limit is removed and defined again",
    bounded_before,
    [Actor("first", taking_one), Actor("second", removing_and_defining_again)],
    one_runs,
)


@named(66)
def test_a_limit_that_comes_back_counts_what_was_claimed_without_it(race: Race) -> None:
    race(again)


@named(66)
@in_modes("held")
def test_it_does_not_without_that_wait(race: Race) -> None:
    race.turns_red(again, UNLOCKED)


# Suspects: what the worker believes to run has ended in the database already.


def with_suspects() -> Script:
    """A setup: three suspects, the first of which runs, and a limit of one."""
    yield from with_running(*(new_job(each) for each in JOBS))()
    for each in JOBS:
        yield crash(FIRST, job_id=each)
    yield define(ONE, actor=None, reason=None)
    yield suspects(FIRST, held=0)


def suspects(holder: str, held: int) -> Any:
    """A claim under the limits by a worker that believes to run so many, and may run three at once."""

    def claiming(limit: int) -> Any:
        return store.claim_suspect(
            "mail", holder=holder, names=["send"], margin_s=10.0, at_most=held + 2, limit=limit, bounded=True
        )

    return bound_claim("mail", 2, claiming)


def ending_and_taking_the_next(_: Any) -> Script:
    """Its outcome is written, and not yet confirmed in memory, when it asks for more."""
    yield from _succeeding()
    yield suspects(FIRST, held=1)


def _succeeding() -> Script:
    for each in JOBS:
        yield succeed(FIRST, attempt=2, job_id=each)


def taking_too(_: Any) -> Script:
    yield suspects(SECOND, held=0)


alone = Scenario(
    "limited claim of suspects × an end × limited claim of suspects",
    with_suspects,
    [Actor("first", ending_and_taking_the_next), Actor("second", taking_too)],
    one_runs,
)


@named(66)
@in_modes("plain", "sqlite")
def test_suspects_are_claimed_within_the_limit(race: Race) -> None:
    race(alone)


@named(66)
def test_they_pass_it_where_what_the_worker_believes_decides(race: Race) -> None:
    race.turns_red(
        alone,
        Cut(
            "claim",
            ("LIMIT CAST(lane.mark ->> 4 AS integer)", "LIMIT 9"),
            ("candidate.key < json_extract(lane.value, '$[4]')", "true"),
        ),
        Cut("claim", ("LIMIT CAST(:limit AS integer)", "LIMIT 9"), ("        LIMIT :limit\n", "")),
        Cut(
            "claim",
            None,
            (
                "LIMIT (SELECT max(json_extract(most.value, '$[4]')) FROM json_each(:lanes) AS most)",
                "LIMIT 9",
            ),
        ),
    )
