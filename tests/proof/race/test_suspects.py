"""Races around jobs that take their process down: a crash is counted once, and only against an attempt that is held."""

from __future__ import annotations

from typing import Any

from fencerow.core.store import store
from fencerow.operators import looking
from fencerow_proof.arena.actor import Actor, Script, doing, later
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
    fence,
    note_alone,
    reclaim,
    sweep,
    with_running,
    with_zombie,
)  # fmt: skip


def its_worker_is_late() -> Script:
    """The child has died, and its worker is so late that a reaper may be quicker."""
    yield from with_running()()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def counted_once(story: Story) -> None:
    kinds = [event.kind for event in story.run(looking.events(JOB))]
    assert kinds.count("crashed") + kinds.count("reclaimed") <= 1, "one attempt ended twice"
    (record,) = story.run(store.read([JOB])).values()
    assert record.crashes == kinds.count("crashed"), "a crash was counted that nobody saw"
    assert record.attempt == 1


three = Scenario(
    "crash × reclaim × cancel",
    its_worker_is_late,
    [doing("worker", crash(FIRST)), acting("reaper", sweep), doing("somebody", cancel())],
    counted_once,
)


@named(6, 10)
def test_a_crash_a_reclaim_and_a_cancel_have_one_winner(race: Race) -> None:
    race(three)


@named(6, 10)
def test_a_crash_queues_a_job_that_shall_be_cancelled_without_its_look_at_the_request(race: Race) -> None:
    race.turns_red(
        three,
        Cut(
            "crash",
            ("SET state = CASE WHEN job.cancel_requested_at IS NOT NULL", "SET state = CASE WHEN false"),
            ("SET state = CASE WHEN cancel_requested_at IS NOT NULL", "SET state = CASE WHEN false"),
        ),
    )


@named(10)
def test_a_reclaim_does_too_without_its_own(race: Race) -> None:
    race.turns_red(
        three,
        Cut(
            "reclaim",
            ("CASE WHEN told.cancel_requested_at IS NOT NULL", "CASE WHEN false"),
            ("CASE WHEN told.cancel_requested_at IS NOT NULL", "CASE WHEN false"),
        ),
    )


# A suspect is about to run alone in a worker that is dead already.


def dead_but_unaware() -> Script:
    yield from its_worker_is_late()
    yield die(SECOND)


def counted_if_noted(story: Story) -> None:
    noted = story.results["worker"]
    found = fence(story)
    assert found is not None
    (record,) = story.run(store.read([JOB])).values()
    assert record.crashes <= int(noted), "a crash was counted of a job that was not noted to run alone"
    assert found.state.value == "queued"


def nothing_noted(story: Story) -> None:
    assert not story.results["zombie"], "a stale attempt was noted to run"


alone = Scenario(
    "note_alone × reclaim",
    dead_but_unaware,
    [doing("worker", note_alone(FIRST)), doing("reaper", reclaim(FIRST))],
    counted_if_noted,
)
zombie = Scenario(
    "zombie note_alone × second attempt",
    with_zombie,
    [
        doing("zombie", note_alone(FIRST)),
        doing(
            "second",
            store.claim_suspect("mail", holder=SECOND, names=["send"], margin_s=10.0),
            note_alone(SECOND, 2),
        ),
    ],
    nothing_noted,
)


@named(6)
def test_who_runs_alone_is_counted_only_while_it_is_held(race: Race) -> None:
    race(alone)


@named(8)
def test_a_zombie_is_not_noted_to_run_alone(race: Race) -> None:
    race(zombie)


@named(8)
def test_it_is_without_the_fence(race: Race) -> None:
    race.turns_red(
        zombie,
        Cut(
            "note_alone",
            (
                (
                    "      AND job.state IS NOT DISTINCT FROM 'running'\n      AND job.holder = CAST(:holder AS uuid)\n"
                    "      AND job.attempt = CAST(:attempt AS bigint)\n"
                ),
                "",
            ),
            ("  AND job.state = 'running'\n  AND job.holder = :holder\n  AND job.attempt = :attempt", ""),
        ),
    )


# What becomes a suspect while others claim is no job of theirs.


def claiming_beside(holder: str) -> Actor:
    """Claims all it can, the suspects apart from the others."""

    def script(_: Any) -> Script:
        plain = yield claim(holder, 9)
        alone = yield store.claim_suspect("mail", holder=holder, names=["send"], margin_s=10.0)
        return [job.id for job in plain], [job.id for job in alone]

    return Actor("second", script)


def suspects_are_taken_apart(story: Story) -> None:
    plain, alone = story.results["second"]
    assert plain == [], "a suspect was claimed beside others"
    assert set(alone) <= {JOB}


beside = Scenario(
    "reclaim × claim × claim_suspect",
    dead_but_unaware,
    [doing("reaper", reclaim(FIRST)), claiming_beside(SECOND)],
    suspects_are_taken_apart,
)


@named(8)
def test_a_suspect_is_claimed_from_its_own_lane_alone(race: Race) -> None:
    race(beside)


@named(8)
def test_others_claim_it_when_they_ask_for_no_lane(race: Race) -> None:
    cut = Cut(
        "claim",
        ("AND fencerow.lane(queued) = lane.mark ->> 1", ""),
        ("AND queued.lane = json_extract(lane.value, '$[1]')", ""),
    )
    race.turns_red(beside, cut)
