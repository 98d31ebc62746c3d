"""A worker that was away for too long: whatever it still says about its attempt changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    LEASE_S,
    SECOND,
    acting,
    cancel,
    claim,
    crash,
    die,
    fail,
    fence,
    finishing,
    new_job,
    overdue,
    requeue,
    stop,
    succeed,
    sweep,
    with_jobs,
    with_zombie,
)  # fmt: skip

Ending = Callable[[str, int], Operation[Any]]
ENDINGS: dict[str, Ending] = {
    "succeed": succeed,
    "fail": fail,
    "retry": lambda holder, attempt: requeue(holder, attempt, "retried"),
    "snooze": lambda holder, attempt: requeue(holder, attempt, "snoozed"),
    "release": lambda holder, attempt: requeue(holder, attempt, "released"),
    "stop": stop,
    "crash": crash,
}
QUERY = {
    "succeed": "succeed",
    "fail": "fail",
    "retry": "requeue",
    "snooze": "requeue",
    "release": "requeue",
    "crash": "crash",
}


def suspect() -> Script:
    """The second attempt, by another worker: the job is a suspect now."""
    claimed = yield store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0)
    return (yield from finishing(SECOND, [(job.id, job.attempt) for job in claimed]))


def only_the_second_counts(story: Story) -> None:
    assert story.results["zombie"] in ([], ([], []))  # nothing moved
    found = fence(story)
    assert found is not None
    assert (found.state.value, found.attempt) in [("queued", 1), ("running", 2), ("succeeded", 2)]
    if story.results["second"]:
        assert found.state.value == "succeeded"


def against_second(name: str) -> Scenario:
    return Scenario(
        f"zombie {name} × second attempt",
        with_zombie,
        [doing("zombie", ENDINGS[name](FIRST, 1)), acting("second", suspect)],
        only_the_second_counts,
    )


@pytest.mark.parametrize("name", ENDINGS)
def test_a_zombie_cannot_end_the_second_attempt(race: Race, name: str) -> None:
    race(against_second(name))


# The same worker again: its first attempt was timed out, and it has claimed the job once more.


def timed_out() -> Script:
    yield from with_jobs(new_job(timeout_s=1.0))()
    yield claim(FIRST)
    yield overdue()
    yield store.time_out(limit=10, delay_s=0.0, actor="reaper")


def again() -> Script:
    claimed = yield claim(FIRST)
    return (yield from finishing(FIRST, [(job.id, job.attempt) for job in claimed]))


def against_itself(name: str) -> Scenario:
    return Scenario(
        f"stale {name} × the same worker's second attempt",
        timed_out,
        [doing("zombie", ENDINGS[name](FIRST, 1)), acting("second", again)],
        only_the_second_counts,
    )


@pytest.mark.parametrize("name", QUERY)
def test_a_stale_attempt_cannot_end_a_newer_one_of_the_same_worker(race: Race, name: str) -> None:
    race(against_itself(name))


@pytest.mark.parametrize("name", QUERY)
def test_it_does_without_the_attempt_in_the_fence(race: Race, name: str) -> None:
    here = "      AND job.attempt = outcome.attempt\n"
    there = {
        "succeed": ("\n  AND job.attempt = json_extract(o.value, '$.attempt')", ""),
        "fail": ("\n  AND fencerow.jobs.attempt = json_extract(o.value, '$.attempt')", ""),
        "requeue": ("\n  AND fencerow.jobs.attempt = json_extract(o.value, '$.attempt')", ""),
        "crash": ("\n  AND fencerow.jobs.attempt = json_extract(o.value, '$.attempt')", ""),
    }[QUERY[name]]
    race.turns_red(against_itself(name), Cut(QUERY[name], (here, ""), there))


# The number alone is no fence: after a delete and a submit of the same id it starts anew.


def same_number() -> Script:
    yield from with_zombie()
    yield cancel()
    yield store.delete([JOB])
    yield store.submit([new_job()])


def other() -> Script:
    claimed = yield claim(SECOND)
    return (yield from finishing(SECOND, [(job.id, job.attempt) for job in claimed]))


def only_the_holder_counts(story: Story) -> None:
    assert story.results["zombie"] in ([], ([], []))  # nothing moved
    found = fence(story)
    assert found is not None
    assert (found.state.value, found.attempt) in [("queued", 0), ("running", 1), ("succeeded", 1)]


def against_namesake(name: str) -> Scenario:
    return Scenario(
        f"stale {name} × the same number under another holder",
        same_number,
        [doing("zombie", ENDINGS[name](FIRST, 1)), acting("second", other)],
        only_the_holder_counts,
    )


@pytest.mark.parametrize("name", QUERY)
def test_the_same_number_under_another_holder_is_not_mistaken(race: Race, name: str) -> None:
    race(against_namesake(name))


@pytest.mark.parametrize("name", QUERY)
def test_it_is_without_the_holder_in_the_fence(race: Race, name: str) -> None:
    here = "      AND job.holder = CAST(:holder AS uuid)\n"
    there = {
        "succeed": ("\n  AND +job.holder = :holder", ""),
        "fail": ("\n  AND +fencerow.jobs.holder = :holder", ""),
        "requeue": ("\n  AND +fencerow.jobs.holder = :holder", ""),
        "crash": ("\n  AND +fencerow.jobs.holder = :holder", ""),
    }[QUERY[name]]
    race.turns_red(against_namesake(name), Cut(QUERY[name], (here, ""), there))


# What an attempt writes about itself.


def notes() -> Script:
    wrote = yield store.progress(JOB, holder=FIRST, attempt=1, percent=50.0, note=None)
    kept = yield store.log(JOB, holder=FIRST, attempt=1, level="INFO", message="still here")
    return wrote or kept


def nothing_written(story: Story) -> None:
    assert not story.results["zombie"]


zombie_notes = Scenario(
    "zombie progress and log × second attempt",
    with_zombie,
    [acting("zombie", notes), acting("second", suspect)],
    nothing_written,
)


@named(8)
def test_a_zombie_writes_no_progress_and_no_log(race: Race) -> None:
    race(zombie_notes)


@named(8)
def test_a_zombie_writes_without_the_fence(race: Race) -> None:
    here = (
        "      AND job.holder = CAST(:holder AS uuid)\n      AND job.attempt = CAST(:attempt AS bigint)\n",
        "",
    )
    there = ("  AND job.holder = :holder\n  AND job.attempt = :attempt", "")
    race.turns_red(zombie_notes, Cut("progress", here, there))


# A renewal that comes too late.


def renewing() -> Script:
    alive = yield store.renew(holder=FIRST)
    return alive, (yield from finishing(FIRST, [(JOB, 1)]))


def expired() -> Script:
    yield from with_jobs()()
    yield claim(FIRST)
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def renewed_or_dead(story: Story) -> None:
    alive, moved = story.results["first"]
    dead = story.results["reaper"]

    if alive:
        assert FIRST not in dead, "a worker that renewed was declared dead"
        assert moved == [JOB]
    else:
        assert FIRST in dead
    assert SECOND not in dead, "a worker with a lease was declared dead"
    found = fence(story)
    assert found is not None
    assert (found.state.value == "succeeded") == (moved == [JOB])


renew_die = Scenario(
    "die × renew × reclaim", expired, [acting("first", renewing), acting("reaper", sweep)], renewed_or_dead
)


def burying() -> Script:
    return (yield die(SECOND))


def describing() -> Script:
    return (yield store.describe_worker(holder=FIRST, info='{"n":1}'))


def described_or_dead(story: Story) -> None:
    # Whoever comes second finds the other's end; a dead row keeps what it said.
    dead = story.results["reaper"]
    first = next(each for each in story.run(store.list_workers()) if each.id == FIRST)
    assert FIRST in dead
    assert (first.info == {"n": 1}) is bool(story.results["first"])
    if "reaper" not in story.order[story.order.index("first") :]:  # it was dead before it spoke
        assert not story.results["first"], "the dead spoke"


describe_die = Scenario(
    "die × describe_worker",
    expired,
    [acting("first", describing), acting("reaper", burying)],
    described_or_dead,
)


def test_a_dead_worker_says_no_more(race: Race) -> None:
    race(describe_die)


def test_a_dead_worker_speaks_without_the_guard(race: Race) -> None:
    race.turns_red(
        describe_die,
        Cut("describe_worker", ("\n  AND worker.state = 'alive'", ""), ("\n  AND state = 'alive'", "")),
    )


def test_a_worker_renews_or_dies(race: Race) -> None:
    race(renew_die)


def test_a_renewed_worker_dies_without_the_look_at_its_lease(race: Race) -> None:
    race.turns_red(
        renew_die,
        Cut(
            "die",
            ("  AND worker.lease_until < (SELECT clock.now FROM clock)\n", ""),
            ("  AND lease_until < fencerow.now()\n", ""),
        ),
        Cut("die", ("          AND late.lease_until < (SELECT clock.now FROM clock)\n", "")),
    )


def test_a_dead_worker_renews_without_the_guard(race: Race) -> None:
    race.turns_red(
        renew_die, Cut("renew", ("  AND worker.state = 'alive'\n", ""), ("  AND state = 'alive'\n", ""))
    )
