"""Races of submits under a unique key: one job of it is stored, and what they replace has never started."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.state import State
from fencerow.core.model.submission import SubmitResult
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.operators import changes, looking
from fencerow.operators.job_change import JobChange
from fencerow.unique.keys import purge_unique
from fencerow.unique.rules import UniqueClaim, UniqueRule
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
    cancel,
    claim,
    new_job,
    register,
    revive,
    state,
    succeed,
)  # fmt: skip

KEEP, REPLACE = UniqueRule(), UniqueRule(replaces=True)
UNTIL_START = UniqueRule(states=("waiting", "queued"))
DEBOUNCE = UniqueRule(replaces=True, put_off_s=5.0, put_off_max_s=60.0)
IDS = (JOB, OTHER_JOB, THIRD_JOB)


def unique(
    job_id: str, rule: UniqueRule = KEEP, *, again: bool = False, **fields: Any
) -> Operation[list[SubmitResult]]:
    """A submit under the key u. What a job is shows in its arguments: the id under which it was submitted."""
    job = new_job(job_id, args=f'"{job_id}"', **fields)
    asked = [as_unique(job, UniqueClaim(scope="s", key="u", rule=rule))]
    return (store.resubmit_asked if again else store.submit_asked)(asked)


def one_worker() -> Script:
    yield register(FIRST)


def unique_queued() -> Script:
    yield register(FIRST)
    yield unique(JOB)


def unique_ended() -> Script:
    yield from unique_queued()
    yield claim(FIRST)
    yield succeed(FIRST)


def working(story: Any) -> Script:
    """A worker: claims what is due, and ends it."""
    claimed = yield claim(FIRST)
    for job in claimed:
        yield succeed(FIRST, job.attempt, job.id)
    return [job.id for job in claimed]


def said(story: Story, name: str) -> str:
    (answer,) = story.results[name]
    return "replaced" if answer.replaced else "existing" if answer.replay else "inserted"


def stored(story: Story) -> list[str]:
    return [job_id for job_id in IDS if state(story, job_id) is not None]


def args(story: Story, job_id: str) -> Any:
    return story.run(store.read([job_id]))[job_id].args


# Submits under one key.


def one_is_stored(story: Story) -> None:
    answers = sorted(said(story, name) for name in ("first", "second"))
    assert answers == ["existing", "inserted"], answers
    assert len(stored(story)) == 1, "two jobs of one key"
    assert {story.results[name][0].id for name in ("first", "second")} == set(stored(story))


submit_submit = Scenario(
    "submit_unique × submit_unique",
    one_worker,
    [doing("first", unique(JOB)), doing("second", unique(OTHER_JOB))],
    one_is_stored,
)
after_an_end = Scenario(
    "submit_unique × submit_unique, the first job ended",
    unique_ended,
    [doing("first", unique(OTHER_JOB)), doing("second", unique(THIRD_JOB))],
    lambda story: one_is_live(story),
)


def one_is_live(story: Story) -> None:
    live = [each for each in (OTHER_JOB, THIRD_JOB) if state(story, each) is not None]
    assert len(live) == 1, "two jobs of one key"
    assert sorted(said(story, name) for name in ("first", "second")) == ["existing", "inserted"]


NO_LOCK = Cut(
    "lock_unique",
    ("DO UPDATE SET job_id = owned.job_id WHERE false", "DO NOTHING"),
)
"""Whoever finds the row does not wait for whoever has changed it."""


@named(65)
def test_one_job_of_a_key_is_stored(race: Race) -> None:
    race(submit_submit)
    race(after_an_end)


@named(65)
@in_modes("plain", "held")
def test_two_are_stored_when_the_key_is_not_locked(race: Race) -> None:
    race.turns_red(after_an_end, NO_LOCK)


# A submit that replaces, and a worker.


def the_newest_runs(story: Story) -> None:
    """What was replaced had not started; what could not be stands beside a new job, which is what was submitted."""
    answer = said(story, "submit")
    assert answer in ("replaced", "inserted")
    if answer == "replaced":
        assert stored(story) == [JOB]
        assert args(story, JOB) == OTHER_JOB, "what was submitted last is nowhere"
    else:
        assert stored(story) == [JOB, OTHER_JOB]
        assert (args(story, JOB), args(story, OTHER_JOB)) == (JOB, OTHER_JOB), (
            "a job that had started was changed"
        )
    assert state(story, JOB) in (State.QUEUED, State.SUCCEEDED, State.CANCELLED)


def replacing(*others: Any, name: str) -> Scenario:
    return Scenario(
        f"submit_unique that replaces × {name}",
        unique_queued,
        [doing("submit", unique(OTHER_JOB, REPLACE)), *others],
        the_newest_runs,
    )


replace_claim = replacing(Actor("worker", working), name="claim × succeed")
replace_cancel = replacing(doing("cancel", cancel()), name="cancel")
NO_HOLD = Cut("hold_unique", ("\n    FOR UPDATE", ""))
NO_STATE = (
    Cut("replace_jobs", ("\n  AND job.state IN ('waiting', 'queued')\n  AND job.attempt = 0", "")),
    NO_HOLD,
)


@named(65)
def test_what_is_replaced_has_never_started(race: Race) -> None:
    race(replace_claim)
    race(replace_cancel)


@named(65)
@in_modes("plain", "held")
def test_the_newest_is_lost_when_the_job_is_not_locked(race: Race) -> None:
    race.turns_red(replace_claim, NO_HOLD)


@named(65)
@in_modes("plain", "held")
def test_a_job_that_runs_is_changed_without_lock_and_state(race: Race) -> None:
    race.turns_red(replace_claim, *NO_STATE)


def the_last_wins(story: Story) -> None:
    assert sorted(said(story, name) for name in ("first", "second")) == ["replaced", "replaced"]
    assert stored(story) == [JOB]
    assert args(story, JOB) in (OTHER_JOB, THIRD_JOB)
    told = [each.detail["submit"] for each in story.run(looking.events(JOB)) if each.kind == "replaced"]
    assert sorted(told) == [OTHER_JOB, THIRD_JOB] and told[-1] == args(story, JOB)


@named(65)
def test_of_two_that_replace_the_last_stands(race: Race) -> None:
    race(
        Scenario(
            "submit_unique that replaces × submit_unique that replaces",
            unique_queued,
            [doing("first", unique(OTHER_JOB, REPLACE)), doing("second", unique(THIRD_JOB, DEBOUNCE))],
            the_last_wins,
        )
    )


@named(65)
def test_a_change_and_a_replacement_come_one_after_the_other(race: Race) -> None:
    def both(story: Story) -> None:
        assert said(story, "submit") == "replaced"
        assert args(story, JOB) == OTHER_JOB

    change = changes.change(JOB, JobChange(priority=7), actor=None)
    race(
        Scenario(
            "submit_unique that replaces × change",
            unique_queued,
            [doing("submit", unique(OTHER_JOB, REPLACE)), doing("change", change)],
            both,
        )
    )


# Ends, revivals and purges.


def somebody_counts(story: Story) -> None:
    """The job that the answer names is there, and the next submit finds a live one or stores one."""
    (answer,) = story.results["submit"]
    assert state(story, answer.id) is not None
    (after,) = story.run(unique(THIRD_JOB))
    live = {State.WAITING, State.QUEUED, State.RUNNING}
    counted = [each for each in IDS if state(story, each) in live]
    assert after.id in counted
    assert said(story, "submit") != "inserted" or after.id in (OTHER_JOB, THIRD_JOB)


@named(65)
def test_an_end_frees_its_key_for_the_next_submit(race: Race) -> None:
    race(
        Scenario(
            "submit_unique × claim × succeed",
            unique_queued,
            [doing("submit", unique(OTHER_JOB)), Actor("worker", working)],
            somebody_counts,
        )
    )
    race(
        Scenario(
            "submit_unique × revive of the job of the key",
            unique_ended,
            [doing("submit", unique(OTHER_JOB)), doing("revive", revive())],
            somebody_counts,
        )
    )


def unique_gone() -> Script:
    yield from unique_ended()
    yield store.delete([JOB])


def the_key_is_of_the_new_job(story: Story) -> None:
    assert said(story, "submit") == "inserted"
    (after,) = story.run(unique(THIRD_JOB))
    assert (after.id, after.replay) == (OTHER_JOB, True), "the key of a live job was forgotten"


purge_submit = Scenario(
    "purge_unique × submit_unique",
    unique_gone,
    [doing("purge", purge_unique(("", ""), limit=9)), doing("submit", unique(OTHER_JOB))],
    the_key_is_of_the_new_job,
)


@named(65)
def test_no_purge_forgets_the_key_of_a_job_that_is_there(race: Race) -> None:
    race(purge_submit)


@named(65)
@in_modes("plain", "held")
def test_the_key_of_a_new_job_is_forgotten_by_a_purge_that_locks_nothing(race: Race) -> None:
    """A DELETE that waits for the row looks again at the row, and not at the jobs."""
    race.turns_red(purge_submit, Cut("lock_over", ("\n    FOR UPDATE SKIP LOCKED", "")))
