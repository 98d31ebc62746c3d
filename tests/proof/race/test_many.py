"""Races of moves of many jobs: each job has one fate, whoever moves the others, and nobody waits for a stranger."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from fencerow.core.model.state import FINAL, State
from fencerow.db.run import Operation
from fencerow.errors import FencerowError, JobNotFound, KeyConflict
from fencerow.operators.at_once import delete_many
from fencerow.operators.many import CancelMany, DeleteMany, JobDone, ManyMove, ReviveMany, moving
from fencerow_proof.arena.actor import Actor, Script, doing
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    THIRD_JOB,
    acting,
    cancel,
    claim,
    fence,
    keyed,
    new_job,
    revive,
    state,
    succeed,
    with_jobs,
    working,
)  # fmt: skip
from tests.proof.race.test_submit import expired_key

BOTH = (JOB, OTHER_JOB)
TWO = (new_job(JOB), new_job(OTHER_JOB))


def many(name: str, move: ManyMove, *ids: str) -> Actor:
    """Somebody who moves these jobs as the command does; returns what became of each."""

    def script(_: Any) -> Generator[Operation[Any], Any, dict[str, JobDone]]:
        done: list[JobDone] = []
        steps = moving(ids or BOTH, move, done)
        try:
            request = next(steps)
            while True:
                try:
                    # What would wake others up is no step of a race.
                    answer = (yield request) if isinstance(request, Operation) else None
                except FencerowError as error:
                    request = steps.throw(error)
                else:
                    request = steps.send(answer)
        except StopIteration:
            return {each.id: each for each in done}

    return Actor(name, script)


def two_finished() -> Script:
    yield from with_jobs(*TWO)()
    for job in (yield claim(FIRST, 2)):
        yield succeed(FIRST, job.attempt, job.id)


# Cancel.


def each_has_one_fate(story: Story) -> None:
    answers: dict[str, JobDone] = story.results["cancel"]
    claimed, moved = story.results["worker"]
    assert answers.keys() == set(BOTH)
    for job_id, answer in answers.items():
        now = state(story, job_id)
        match answer.outcome:
            case "cancelled":
                assert now == State.CANCELLED
                assert job_id not in claimed, "a running job was cancelled under its holder"
            case "asked to stop":
                assert now in (State.RUNNING, State.SUCCEEDED)
            case _:
                assert job_id in moved, f"it was refused without reason: {answer.error}"


cancelling = Scenario(
    "cancel of many × claim × succeed",
    with_jobs(*TWO),
    [many("cancel", CancelMany("someone", None)), working("worker", FIRST, 2)],
    each_has_one_fate,
)


def test_each_of_many_is_cancelled_or_asked_or_refused(race: Race) -> None:
    race(cancelling)


def test_a_cancel_of_many_takes_a_running_job_without_its_guard(race: Race) -> None:
    race.turns_red(
        cancelling,
        Cut(
            "cancel_idle",
            ("      AND job.state IN ('waiting', 'queued')\n", ""),
            ("AND state IN ('waiting', 'queued')", ""),
        ),
    )


def cancelled_once(story: Story) -> None:
    many_of, one = story.results["many"][JOB], story.results["one"]
    refused = isinstance(one, FencerowError)
    assert (many_of.outcome == "cancelled") == refused, "both or neither cancelled it"
    assert state(story) == state(story, OTHER_JOB) == State.CANCELLED


def test_a_job_is_cancelled_by_one_of_two(race: Race) -> None:
    race(
        Scenario(
            "cancel of many × cancel of one of them",
            with_jobs(*TWO),
            [many("many", CancelMany("someone", None)), doing("one", cancel())],
            cancelled_once,
        )
    )


def both_cancelled(story: Story) -> None:
    for job_id in BOTH:
        told = [story.results[name][job_id].outcome for name in ("first", "second")]
        assert sorted(told) == ["cancelled", "left"]
        assert state(story, job_id) == State.CANCELLED


def test_two_that_cancel_the_same_jobs_share_them(race: Race) -> None:
    race(
        Scenario(
            "cancel of many × cancel of the same",
            with_jobs(*TWO),
            [
                many("first", CancelMany("someone", None), JOB, OTHER_JOB),
                many("second", CancelMany("other", None), OTHER_JOB, JOB),
            ],
            both_cancelled,
        )
    )


# Revive.


def revived_once(story: Story) -> None:
    answers, one = story.results["many"], story.results["one"]
    queued = [answers[JOB].outcome == "queued", not isinstance(one, Exception)]
    assert True in queued
    assert answers[OTHER_JOB].outcome == "queued"
    found = fence(story)
    assert found is not None
    assert (found.state, found.attempt) == (State.QUEUED, 1)


reviving = Scenario(
    "revive of many × revive of one of them",
    two_finished,
    [many("many", ReviveMany("someone", None)), doing("one", revive())],
    revived_once,
)


def test_a_revive_of_many_starts_each_job_once(race: Race) -> None:
    race(reviving)


def key_with_one_owner(story: Story) -> None:
    revived, submitted = story.results["revive"][JOB], story.results["submit"]
    assert not isinstance(submitted, Exception), submitted
    if isinstance(revived.error, KeyConflict):
        assert (submitted[0].id, submitted[0].replay) == (OTHER_JOB, False)
    else:
        assert revived.outcome == "queued"
        assert (submitted[0].id, submitted[0].replay) == (JOB, True), "two live jobs of one key"


keyed_revive = Scenario(
    "revive of many × submit_keyed, the key expired",
    expired_key,
    [many("revive", ReviveMany("someone", None), JOB, THIRD_JOB), doing("submit", keyed(OTHER_JOB))],
    key_with_one_owner,
)


def test_a_key_goes_to_one_of_many_or_to_the_new_job(race: Race) -> None:
    race(keyed_revive)


def test_both_have_it_when_a_revive_of_many_does_not_keep_it(race: Race) -> None:
    race.turns_red(
        keyed_revive,
        Cut(
            "keep_key",
            ("SET expires_at = NULL", "SET expires_at = expires_at"),
            ("expires_at = NULL", "expires_at = expires_at"),
        ),
    )


# Delete.


def deleted_or_revived(story: Story) -> None:
    deleted, revived = story.results["delete"], story.results["revive"]
    assert deleted[OTHER_JOB].outcome == "deleted"
    if deleted[JOB].outcome == "deleted":
        assert isinstance(revived, JobNotFound)
        assert state(story) is None
    else:
        assert state(story) not in (None, *FINAL)


deleting = Scenario(
    "delete of many × revive",
    two_finished,
    [many("delete", DeleteMany()), doing("revive", revive())],
    deleted_or_revived,
)


def test_each_of_many_is_deleted_or_revived(race: Race) -> None:
    race(deleting)


# Nobody waits.


def alone(operation: Operation[Any], name: str) -> Actor:
    def script() -> Script:
        return (yield operation)

    return acting(name, script)


def waits_for_nobody(story: Story) -> None:
    assert "many" not in story.waited


def many_beside_a_revive() -> Scenario:
    return Scenario(
        "delete of many × revive, without waiting",
        two_finished,
        [alone(delete_many(list(BOTH)), "many"), doing("revive", revive())],
        waits_for_nobody,
    )


@in_modes("plain", "held")
def test_a_move_of_many_waits_for_nobody(race: Race) -> None:
    race(many_beside_a_revive())


@in_modes("plain", "held")
def test_a_move_of_many_that_skips_nothing_waits(race: Race) -> None:
    race.turns_red(many_beside_a_revive(), Cut("lock_removable", ("FOR UPDATE SKIP LOCKED", "FOR UPDATE")))
