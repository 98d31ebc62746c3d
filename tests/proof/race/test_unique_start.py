"""Races of a unique key that counts until its job starts: a start frees the key while others submit and replace."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.state import State
from fencerow.core.model.submission import SubmitResult
from fencerow.core.store import store
from fencerow.db.run import Steps, operation
from fencerow.unique.rules import UniqueClaim
from fencerow_proof.arena.actor import Actor, Script, doing
from fencerow_proof.arena.race import Scenario, Story
from tests.kit.asked import as_unique
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    THIRD_JOB,
    claim,
    fence,
    new_job,
    requeue,
    state,
    succeed,
    uid,
)
from tests.proof.race.test_unique import IDS, REPLACE, UNTIL_START, args, said, unique, unique_queued

BESIDE = uid(9)
NO_HOLD = Cut("hold_unique", ("\n    FOR UPDATE", ""))
NO_ATTEMPT = (
    Cut("read_unique", ("job.attempt", "0"), ("job.attempt", "0")),
    Cut("replace_jobs", ("\n  AND job.attempt = 0", ""), ("\n  AND fencerow.jobs.attempt = 0", "")),
)
"""Whoever decides does not see that an attempt has started, and the statement does not ask."""


@operation()
def submit_beside() -> Steps[list[SubmitResult]]:
    """A submit until the start, and beside it, in its transaction, what its work shall see: a row of another queue."""
    asked = as_unique(new_job(OTHER_JOB), UniqueClaim(scope="s", key="u", rule=UNTIL_START))
    answers = yield from store.submit_asked([asked]).steps()
    yield from store.submit([new_job(BESIDE, queue="beside")]).steps()
    return answers


def running(story: Any) -> Script:
    """A worker: claims what is due, looks for the row with the arguments it got, and ends it."""
    claimed = yield claim(FIRST)
    seen = yield store.read_fences([BESIDE])
    for job in claimed:
        yield succeed(FIRST, job.attempt, job.id)
    return [(job.id, job.args) for job in claimed], bool(seen)


# A start, and a submit that counts on the job.


def waiting(story: Any) -> Script:
    """A worker whose claim waits for a locked row: if nobody has it locked, it claims as all do."""
    claimed = yield store.claim_passed_over(
        "mail", 0, holder=FIRST, names=["send"], margin_s=10.0, wait_ms=600_000
    )
    claimed = claimed or (yield claim(FIRST))
    seen = yield store.read_fences([BESIDE])
    for job in claimed:
        yield succeed(FIRST, job.attempt, job.id)
    return [(job.id, job.args) for job in claimed], bool(seen)


def what_was_written_is_seen(story: Story) -> None:
    claimed, seen = story.results["worker"]
    if said(story, "submit") == "existing" and claimed:
        assert seen, "the job had started before the submit that was told it exists was committed"
    if said(story, "submit") == "inserted":
        assert claimed and claimed[0][0] == JOB, "a second job of the key, and the first had not started"


start_submit = Scenario(
    "claim × submit_unique that counts until the start",
    unique_queued,
    [doing("submit", submit_beside()), Actor("worker", running)],
    what_was_written_is_seen,
)


@named(69)
def test_a_job_that_a_submit_counts_on_starts_after_it(race: Race) -> None:
    race(start_submit)


@named(69)
@in_modes("plain", "held")
def test_it_has_started_before_when_it_is_not_locked(race: Race) -> None:
    race.turns_red(start_submit, NO_HOLD)


# The same, and the worker waits for the row.


start_waiting = Scenario(
    "claim_passed_over × submit_unique that counts until the start",
    unique_queued,
    [doing("submit", submit_beside()), Actor("worker", waiting)],
    what_was_written_is_seen,
)


@named(69)
@in_modes("plain", "held")
def test_a_claim_that_waits_for_a_locked_job_starts_it_after_the_submit(race: Race) -> None:
    race(start_waiting)


@named(69)
@in_modes("plain", "held")
def test_it_has_started_before_when_there_is_nothing_to_wait_for(race: Race) -> None:
    race.turns_red(start_waiting, NO_HOLD)


# A start, and two submits: one that counts on the job, one that takes its place.


def one_waits_and_none_has_changed(story: Story) -> None:
    claimed, _ = story.results["worker"]
    for job_id, given in claimed:
        assert bytes(given) == _text(args(story, job_id)), "a job that had started was changed"
    waiting = [each for each in IDS if state(story, each) == State.QUEUED]
    assert len(waiting) <= 1, "two jobs of the key that have not started"
    newest = said(story, "replace")
    answer = story.results["replace"][0].id
    assert (newest == "replaced") is (answer != THIRD_JOB)
    assert args(story, answer) == THIRD_JOB, "what was submitted is nowhere"
    assert state(story, story.results["submit"][0].id) is not None


start_submit_replace = Scenario(
    "claim × submit_unique that counts until the start × submit_unique that replaces",
    unique_queued,
    [
        doing("submit", unique(OTHER_JOB, UNTIL_START)),
        doing("replace", unique(THIRD_JOB, REPLACE)),
        Actor("worker", running),
    ],
    one_waits_and_none_has_changed,
)


start_waiting_replace = Scenario(
    "claim_passed_over × submit_unique that counts until the start × submit_unique that replaces",
    unique_queued,
    [
        doing("submit", unique(OTHER_JOB, UNTIL_START)),
        doing("replace", unique(THIRD_JOB, REPLACE)),
        Actor("worker", waiting),
    ],
    one_waits_and_none_has_changed,
)


def _text(value: object) -> bytes:
    return f'"{value}"'.encode()


@named(69)
def test_a_start_frees_the_key_while_others_submit_and_replace(race: Race) -> None:
    race(start_submit_replace)


@named(69)
@in_modes("plain", "held")
def test_a_claim_that_has_waited_starts_what_the_last_submit_says(race: Race) -> None:
    race(start_waiting_replace)


@named(69)
@in_modes("plain", "held")
def test_two_wait_or_one_that_runs_is_changed_without_lock_and_state(race: Race) -> None:
    no_state = Cut("replace_jobs", ("\n  AND job.state IN ('waiting', 'queued')\n  AND job.attempt = 0", ""))
    race.turns_red(start_submit_replace, no_state, NO_HOLD)


# A job that has started and is queued again, for its next attempt.


def unique_started() -> Script:
    yield from unique_queued()
    yield claim(FIRST)


def the_started_one_stays_what_it_was(story: Story) -> None:
    assert said(story, "replace") == "inserted", "a job of which an attempt has started was replaced"
    assert args(story, JOB) == JOB
    found = fence(story)
    assert found is not None and found.state is State.QUEUED
    assert args(story, THIRD_JOB) == THIRD_JOB


retry_replace = Scenario(
    "requeue of a job that has started × submit_unique that replaces",
    unique_started,
    [doing("retry", requeue(FIRST)), doing("replace", unique(THIRD_JOB, REPLACE))],
    the_started_one_stays_what_it_was,
)


@named(69)
def test_a_job_between_its_attempts_is_not_replaced(race: Race) -> None:
    race(retry_replace)


@named(69)
def test_it_is_when_nobody_asks_for_the_attempt(race: Race) -> None:
    race.turns_red(retry_replace, *NO_ATTEMPT)


def retrying(story: Any) -> Script:
    """A worker whose attempt comes to nothing: it gives the job back, and goes on as `running` does."""
    yield requeue(FIRST)
    return (yield from running(story))


def the_next_attempt_sees_it(story: Story) -> None:
    claimed, seen = story.results["worker"]
    if said(story, "submit") == "existing" and claimed:
        assert seen, "the next attempt had started before the submit that was told it exists was committed"


retry_submit = Scenario(
    "requeue × claim × submit_unique that counts until the start",
    unique_started,
    [doing("submit", submit_beside()), Actor("worker", retrying)],
    the_next_attempt_sees_it,
)


@named(69)
def test_a_submit_counts_on_a_next_attempt_only_if_it_holds_the_job(race: Race) -> None:
    race(retry_submit)


@named(69)
@in_modes("plain", "held")
def test_the_next_attempt_has_started_before_when_it_is_not_locked(race: Race) -> None:
    race.turns_red(retry_submit, NO_HOLD)
