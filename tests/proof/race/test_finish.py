"""Races for the end of a running attempt: succeed, requeue, cancel, reclaim and time out."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.errors import IllegalMove
from fencerow_proof.arena.actor import Actor, Script, doing, later, transaction
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    OTHER_JOB,
    SECOND,
    THIRD_JOB,
    acting,
    cancel,
    claim,
    die,
    fence,
    finishing,
    new_job,
    overdue,
    reclaim,
    requeue,
    state,
    stop,
    with_jobs,
    with_running,
)  # fmt: skip


def succeeding(name: str = "worker", holder: str = FIRST, *jobs: str) -> Actor:
    return acting(name, lambda: finishing(holder, [(job, 1) for job in jobs or (JOB,)]))


def asked_or_too_late(story: Story) -> None:
    answer, moved = story.results["cancel"], story.results["worker"]

    if isinstance(answer, IllegalMove):
        assert moved == [JOB]
        assert answer.state == "succeeded"
    else:
        assert answer.moved is None, "a running job was cancelled under its holder"
        assert answer.holder == FIRST
    assert (state(story) == "succeeded") == (moved == [JOB])


succeed_cancel = Scenario(
    "succeed × cancel", with_running(), [succeeding(), doing("cancel", cancel())], asked_or_too_late
)


def test_a_success_and_a_cancel_agree(race: Race) -> None:
    race(succeed_cancel)


def test_a_cancel_takes_a_running_job_without_its_guard(race: Race) -> None:
    race.turns_red(
        succeed_cancel,
        Cut(
            "cancel_idle",
            ("      AND job.state IN ('waiting', 'queued')\n", ""),
            ("AND state IN ('waiting', 'queued')", ""),
        ),
    )


# Requeue: a cancel that was asked for wins; the worker then stops the attempt.


def giving_back(kind: str) -> Actor:
    def script(_: Any) -> Script:
        for _round in range(2):
            if (yield requeue(FIRST, 1, kind)):
                return "queued"
            if (yield stop(FIRST, 1)):
                return "cancelled"
            if not (yield store.holdings(holder=FIRST)):
                return "lost"
        return "locked"

    return Actor("worker", script)


def never_queued_after_a_cancel(story: Story) -> None:
    answer, became = story.results["cancel"], story.results["worker"]
    now = state(story)

    assert not isinstance(answer, Exception), answer
    if answer.moved is not None:
        assert now == "cancelled"
        assert became == "queued"
    elif became == "cancelled":
        assert now == "cancelled"
    else:
        # The other one's transaction was open whenever this one looked; the job is still the worker's to stop.
        assert (became, now) == ("locked", "running")


def requeue_cancel(kind: str) -> Scenario:
    return Scenario(
        f"{kind} × cancel",
        with_running(),
        [giving_back(kind), doing("cancel", cancel())],
        never_queued_after_a_cancel,
    )


@pytest.mark.parametrize("kind", ["retried", "snoozed", "released"])
@named(10)
def test_a_cancelled_job_is_not_queued_again(race: Race, kind: str) -> None:
    race(requeue_cancel(kind))


@named(10)
def test_it_is_without_the_look_at_the_request(race: Race) -> None:
    race.turns_red(
        requeue_cancel("snoozed"),
        Cut(
            "requeue",
            ("      AND job.cancel_requested_at IS NULL\n", ""),
            ("  AND fencerow.jobs.cancel_requested_at IS NULL\n", ""),
        ),
    )


def test_a_queued_job_is_asked_without_the_look_at_its_state(race: Race) -> None:
    race.turns_red(
        requeue_cancel("snoozed"),
        Cut(
            "ask_cancel",
            ("      AND job.state IS NOT DISTINCT FROM 'running'\n", ""),
            ("\n  AND state = 'running'", ""),
        ),
        Cut("cancel_idle", None, ("AND state IN ('waiting', 'queued')", "AND state IN ('waiting')")),
    )


# Reclaim: its holder is dead, but does not know.


def first_is_dead() -> Script:
    yield from with_running()()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)
    yield die(SECOND)


def succeeded_or_taken(story: Story) -> None:
    found, _ = story.results["reaper"]
    moved = story.results["worker"]

    assert bool(found) != bool(moved), "exactly one of success and reclaim wins"
    assert state(story) == ("succeeded" if moved else "queued")


succeed_reclaim = Scenario(
    "succeed × reclaim",
    first_is_dead,
    [succeeding(), doing("reaper", reclaim(FIRST))],
    succeeded_or_taken,
)


def test_a_late_success_or_the_reclaim_wins(race: Race) -> None:
    race(succeed_reclaim)


def test_a_reclaimed_job_succeeds_when_the_fence_is_gone(race: Race) -> None:
    race.turns_red(
        succeed_reclaim,
        Cut(
            "succeed",
            ("      AND job.holder = CAST(:holder AS uuid)\n", ""),
            ("\n  AND +job.holder = :holder", ""),
        ),
        Cut(
            "succeed",
            ("      AND job.state IS NOT DISTINCT FROM 'running'\n", ""),
            ("WHERE job.state = 'running'", "WHERE true"),
        ),
    )


# Overdue: the reaper ends the attempt while its worker lives.


def called_overdue() -> Script:
    yield from with_jobs(new_job(timeout_s=1.0))()
    yield claim(FIRST)
    yield overdue()


def timing_out() -> Script:
    found, _ = yield store.time_out(limit=10, delay_s=0.0, actor="reaper")
    return [job.id for job in found]


def ended_once(story: Story) -> None:
    found = fence(story)
    assert found is not None
    worker, reaper = story.results["worker"], story.results["reaper"]

    assert not (worker and reaper), "the attempt ended twice"
    assert worker or reaper or found.state == "running"
    record = story.run(store.read([JOB]))[JOB]
    assert record.failures == (1 if reaper else 0), "a timeout counts once"


time_out_succeed = Scenario(
    "time_out × succeed", called_overdue, [succeeding(), acting("reaper", timing_out)], ended_once
)
time_out_requeue = Scenario(
    "time_out × release",
    called_overdue,
    [doing("worker", requeue(FIRST, 1, "released")), acting("reaper", timing_out)],
    ended_once,
)


@pytest.mark.parametrize("scenario", [time_out_succeed, time_out_requeue], ids=lambda scenario: scenario.name)
def test_an_attempt_called_overdue_ends_once(race: Race, scenario: Scenario) -> None:
    race(scenario)


LOCKED = "              AND locked.state IS NOT DISTINCT FROM 'running'\n"
OUTER = (
    "      AND job.state IS NOT DISTINCT FROM 'running'\n"
    "      AND job.holder = overdue.holder\n"
    "      AND job.attempt = overdue.attempt\n"
)
INNER = "WHERE job.state = 'running'\n  AND job.holder = overdue.holder\n  AND job.attempt = overdue.attempt"


@in_modes("held")
def test_it_ends_twice_without_lock_and_guards(race: Race) -> None:
    race.turns_red(
        time_out_requeue,
        Cut("time_out", ("            FOR UPDATE SKIP LOCKED\n", "")),
        Cut("time_out", (OUTER, "")),
    )


@in_modes("plain", "sqlite")
def test_it_ends_twice_without_guards(race: Race) -> None:
    race.turns_red(
        time_out_requeue,
        Cut("time_out", (LOCKED, ""), (INNER, "WHERE true")),
        Cut("time_out", (OUTER, ""), ("  AND job.state = 'running'\n", "")),
        Cut("time_out", None, ("\n  AND fencerow.jobs.state = 'running'", "")),
    )


# A group of outcomes, of which a stranger has locked one row.


def stranger() -> Any:
    yield from cancel(OTHER_JOB).steps()
    yield from store.clock().steps()


def the_others_go_through(story: Story) -> None:
    assert "worker" not in story.waited, "the group waited for a stranger"
    moved = story.results["worker"]
    assert {JOB, THIRD_JOB} <= set(moved)
    assert len(moved) == len(set(moved))


group = Scenario(
    "group succeed × a row locked by a stranger",
    with_running(new_job(JOB), new_job(OTHER_JOB), new_job(THIRD_JOB)),
    [
        succeeding("worker", FIRST, JOB, OTHER_JOB, THIRD_JOB),
        doing("stranger", transaction("cancels", stranger)),
    ],
    the_others_go_through,
)


@named(22)
def test_one_locked_row_does_not_hold_up_a_group(race: Race) -> None:
    race(group)


@in_modes("plain", "held")
@named(22)
def test_it_does_without_skip_locked(race: Race) -> None:
    race.turns_red(group, Cut("succeed", ("FOR UPDATE SKIP LOCKED", "FOR UPDATE")))


# What a worker says of an end that did not come back.


def settling(looks: bool) -> Script:
    """Which ends it takes for lost: what moved away from it, or (hastily) whatever did not come back."""
    outcomes = [store.Success(job, 1, '"done"') for job in (JOB, OTHER_JOB)]
    moved = {each.id for each in (yield store.succeed(outcomes, holder=FIRST))}
    left = {JOB, OTHER_JOB} - moved
    if not looks:
        return left
    found = yield store.read_fences(list(left))
    mine = {
        each.id for each in found.values() if (each.state, each.holder, each.attempt) == ("running", FIRST, 1)
    }
    return left - mine


def nothing_is_given_up_that_is_ours(story: Story) -> None:
    for job in story.results["worker"]:
        found = fence(story, job)
        assert found is not None
        assert (found.holder, found.attempt) != (FIRST, 1), "it runs on under a worker that thinks it lost"


def lost_or_locked(looks: bool) -> Scenario:
    return Scenario(
        "group succeed × a row locked by a stranger × what came of it",
        with_running(new_job(JOB), new_job(OTHER_JOB)),
        [acting("worker", lambda: settling(looks)), doing("stranger", transaction("cancels", stranger))],
        nothing_is_given_up_that_is_ours,
    )


@named(22)
@in_modes("plain", "held")
def test_a_locked_row_is_not_taken_for_lost(race: Race) -> None:
    race(lost_or_locked(looks=True))


@named(22)
@in_modes("plain", "held")
def test_it_is_by_one_who_does_not_look(race: Race) -> None:
    race.breaks(lost_or_locked(looks=False), "whatever did not come back is taken for lost")
