"""Races of reapers: with each other, and with workers that register and claim meanwhile."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.core.store.reap import LeaseAhead
from fencerow.db.run import Operation
from fencerow.operators import looking
from fencerow.retention.purging import forget_workers, spent_workers
from fencerow_proof.arena.actor import Actor, Script, doing, later
from fencerow_proof.arena.race import Scenario, Story, perform
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LATE_US,
    LEASE_S,
    OTHER_JOB,
    SECOND,
    THIRD,
    acting,
    claim,
    die,
    fence,
    new_job,
    reclaim,
    register,
    sweep,
    with_jobs,
    with_running,
)  # fmt: skip


def first_is_late() -> Script:
    yield from with_running(new_job(JOB), new_job(OTHER_JOB))()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def first_is_dead() -> Script:
    yield from first_is_late()
    yield die(SECOND)


def each_taken_once(story: Story) -> None:
    for job_id in (JOB, OTHER_JOB):
        kinds = [event.kind for event in story.run(looking.events(job_id))]
        assert kinds.count("reclaimed") <= 1, f"{job_id} was taken twice"
    for record in story.run(store.read([JOB, OTHER_JOB])).values():
        assert record.crashes == 0, "a first death counts nothing"


sweeps = Scenario(
    "sweep × sweep", first_is_late, [acting("first", sweep), acting("second", sweep)], each_taken_once
)
reclaims = Scenario(
    "reclaim × reclaim",
    first_is_dead,
    [doing("first", reclaim(FIRST)), doing("second", reclaim(FIRST))],
    each_taken_once,
)


@named(3)
def test_two_sweeps_take_each_job_once(race: Race) -> None:
    race(sweeps)


@named(3)
def test_two_reclaims_take_each_job_once(race: Race) -> None:
    race(reclaims)


REPEATED = """\
      AND job.state IS NOT DISTINCT FROM 'running'
      AND job.holder = ANY(CAST(:dead AS uuid[]))
      AND job.attempt = judged.attempt
"""


@in_modes("plain", "held")
@named(3)
def test_a_job_is_taken_twice_without_lock_and_guards(race: Race) -> None:
    race.turns_red(
        reclaims,
        Cut("reclaim", ("    FOR UPDATE OF job SKIP LOCKED\n", "")),
        Cut("reclaim", (REPEATED, "")),
    )


# What had not begun is no suspect, in however many batches and by however many reapers it is taken.


def one_may_have_begun() -> Script:
    yield store.register(
        holder=FIRST, name="w", host="h", pid=1, info="{}", lease_s=LEASE_S,
        stated='{"version":0,"shares":[],"begun_max":1}',
    )  # fmt: skip
    yield register(SECOND)
    yield store.submit([new_job(JOB), new_job(OTHER_JOB)])
    yield claim(FIRST, 2)
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


def taking_one(name: str) -> Actor:
    return doing(name, store.reclaim([FIRST], limit=1, actor="reaper"))


def the_first_is_suspect(story: Story) -> None:
    perform(story.arena, sweep())
    found = story.run(store.read([JOB, OTHER_JOB]))
    assert [found[each].suspect for each in (JOB, OTHER_JOB)] == [True, False]


begun = Scenario(
    "reclaim × reclaim of what may have begun",
    one_may_have_begun,
    [taking_one("first"), taking_one("second")],
    the_first_is_suspect,
)


def test_only_what_may_have_begun_is_suspect(race: Race) -> None:
    race(begun)


def test_more_are_when_the_first_are_taken_first(race: Race) -> None:
    race.turns_red(
        begun,
        Cut(
            "reclaim",
            ("ORDER BY waited DESC, job.id", "ORDER BY job.id"),
            ("ORDER BY waited DESC, job.id", "ORDER BY job.id"),
        ),
    )


# A newcomer registers and claims while a reaper's statement is under way.


def claiming_anew() -> Script:
    yield register(THIRD)
    return [
        job.id for job in (yield store.claim_suspect("mail", holder=THIRD, names=["send"], margin_s=10.0))
    ]


def the_newcomer_keeps_it(story: Story) -> None:
    for job_id in story.results["newcomer"]:
        found = fence(story, job_id)
        assert found is not None
        assert (found.state.value, found.holder) == ("running", THIRD), "taken from a living worker"


def one_is_dead() -> Script:
    yield from with_running()()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


newcomer = Scenario(
    "register × claim × reclaim × reclaim",
    one_is_dead,
    [doing("reaper", reclaim(FIRST)), doing("slow", reclaim(FIRST)), acting("newcomer", claiming_anew)],
    the_newcomer_keeps_it,
)

BY_VALUE = "job.holder = ANY(CAST(:dead AS uuid[]))"
LIVING = "SELECT 1 FROM fencerow.workers AS living WHERE living.id = job.holder AND living.state = 'alive'"
NOT_AMONG_THE_LIVING = f"NOT EXISTS ({LIVING})"


@named(3)
def test_reclaim_names_the_dead_by_value(race: Race) -> None:
    race(newcomer)


ANTI_JOIN = (
    Cut("reclaim", (BY_VALUE, NOT_AMONG_THE_LIVING)),
    Cut("reclaim", ("      AND job.attempt = judged.attempt\n", "")),
)


@in_modes("held")
@named(3)
def test_an_anti_join_takes_from_a_worker_newer_than_its_snapshot(race: Race) -> None:
    race.turns_red(newcomer, *ANTI_JOIN)


@in_modes("plain")
def test_whole_statements_in_any_order_never_show_it(race: Race) -> None:
    race.without(newcomer, *ANTI_JOIN)


# A judge that is late itself, or whose verdict was held up by the outage that made the others late.


def everybody_is_late() -> Script:
    yield from with_running()()
    renewed = yield store.renew(holder=SECOND)
    yield later(LEASE_S + 1)
    return renewed.at_us + 12_500_000  # what a judge may rely on: a renewal, and no gap since


def verdict_of_the_late(until_us: int) -> Script:
    return (yield die(SECOND))


def verdict_held_up(until_us: int) -> Script:
    yield store.renew(holder=SECOND)
    return (yield die(SECOND, until_us))


def coming_back() -> Script:
    return (yield store.renew(holder=FIRST))


def nobody_is_buried(story: Story) -> None:
    assert story.results["judge"] == [], "an outage was taken for a death"
    assert story.results["first"] is not None


late_judge = Scenario(
    "die by a late judge × renew",
    everybody_is_late,
    [Actor("judge", verdict_of_the_late), acting("first", coming_back)],
    nobody_is_buried,
)
held_up = Scenario(
    "die held up by an outage × renew",
    everybody_is_late,
    [Actor("judge", verdict_held_up), acting("first", coming_back)],
    nobody_is_buried,
)


@pytest.mark.parametrize("scenario", [late_judge, held_up], ids=lambda scenario: scenario.name)
@named(5)
def test_nobody_is_buried_after_an_outage(race: Race, scenario: Scenario) -> None:
    race(scenario)


@named(5)
def test_a_late_judge_buries_without_the_look_at_its_own_lease(race: Race) -> None:
    race.turns_red(
        late_judge,
        Cut(
            "die",
            ("judge.lease_until > (SELECT clock.now FROM clock)", "true"),
            ("judge.lease_until > fencerow.now()", "1"),
        ),
    )


@named(5)
def test_a_verdict_that_was_held_up_buries_without_its_end(race: Race) -> None:
    race.turns_red(
        held_up,
        Cut(
            "die",
            (
                "(SELECT clock.now FROM clock) < fencerow.at(CAST(:until_us AS bigint))",
                ":until_us IS NOT NULL",
            ),
            ("fencerow.now() < :until_us", ":until_us IS NOT NULL"),
        ),
    )


# A claim that is slower than the death of its worker, and than the memory of it.


def slow_claim() -> Script:
    return [job.id for job in (yield claim(FIRST))]


def dies_and_is_forgotten() -> Script:
    yield die(SECOND)
    yield forget_workers((yield spent_workers(age_s=0.0)), age_s=0.0)


def nobody_to_claim() -> Script:
    yield from with_jobs()()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def found_by_the_next_sweep(story: Story) -> None:
    perform(story.arena, sweep())
    found = fence(story)
    assert found is not None
    assert found.state.value == "queued", "a job stays with a holder that nobody knows"


forgotten = Scenario(
    "claim × die × forget_workers",
    nobody_to_claim,
    [acting("first", slow_claim), acting("reaper", dies_and_is_forgotten)],
    found_by_the_next_sweep,
)


@named(3)
def test_a_claim_slower_than_its_holders_death_is_found(race: Race) -> None:
    race(forgotten)


@in_modes("held")
@named(3)
def test_it_is_not_when_nobody_adopts(race: Race) -> None:
    race.turns_red(
        forgotten, Cut("lost_holders", ("WHERE job.state = 'running'", "WHERE job.state = 'nothing'"))
    )


# The clock went back: a lease from before holds for another hour, unless its worker renews.


def the_clock_went_back() -> Generator[Operation[Any], Any, list[LeaseAhead]]:
    yield from with_running()()
    yield later(-3600.0)
    yield store.renew(holder=SECOND)
    found: list[LeaseAhead] = yield store.leases_ahead()
    return found


def judging(ahead: list[LeaseAhead]) -> Script:
    return (yield store.die_ahead(ahead, judge=SECOND, until_us=LATE_US))


def renewing_late() -> Script:
    return (yield store.renew(holder=FIRST)) is not None


def renewed_or_buried(story: Story) -> None:
    assert (story.results["judge"] == [FIRST]) != story.results["first"], (
        "exactly one of renewal and death wins"
    )


ahead_renew = Scenario(
    "die_ahead × renew",
    the_clock_went_back,
    [Actor("judge", judging), acting("first", renewing_late)],
    renewed_or_buried,
)


@named(71)
def test_who_has_not_renewed_since_the_clock_went_back_renews_or_dies(race: Race) -> None:
    race(ahead_renew)


@named(71)
def test_a_renewed_worker_is_buried_without_the_look_at_its_renewal(race: Race) -> None:
    race.turns_red(
        ahead_renew,
        Cut(
            "die_ahead",
            ("fencerow.us(worker.renewed_at) = silent.renewed_us", "true"),
            ("json_extract(silent.value, '$[1]') = fencerow.workers.renewed_at", "true"),
        ),
        Cut(
            "die_ahead",
            ("worker.lease_until > clock.now + fencerow.seconds(worker.lease_s)", "true"),
            ("lease_until > fencerow.now() + CAST(lease_s * 1000000 AS INTEGER)", "true"),
        ),
    )
