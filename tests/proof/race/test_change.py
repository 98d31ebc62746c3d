"""Races of a change: it comes before a claim, a cancel, an expiry or another change, or after, and is told which."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.change import JobChanged, NewArguments
from fencerow.core.model.state import FINAL, State
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.errors import IllegalMove
from fencerow.operators import changes, looking
from fencerow.operators.job_change import JobChange
from fencerow.operators.many import ChangeMany
from fencerow.turns import handing
from fencerow_proof.arena.actor import Actor, Script, doing, later
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
    cancel,
    claim,
    fence,
    new_job,
    of_a_key,
    register,
    requeue,
    revive,
    state,
    succeed,
    sweep,
    with_jobs,
    with_running,
)  # fmt: skip
from tests.proof.race.test_many import many

NEW = '{"n":2}'
IDLE = {State.WAITING, State.QUEUED}

BOTH_GUARDS = (
    Cut(
        "lock_idle",
        ("\n  AND job.state IN ('waiting', 'queued')", ""),
        ("\n  AND job.state IN ('waiting', 'queued')", ""),
    ),
    Cut(
        "lock_free_idle",
        ("\n  AND job.state IN ('waiting', 'queued')", ""),
        ("\n  AND job.state IN ('waiting', 'queued')", ""),
    ),
    Cut(
        "change",
        ("\n  AND job.state IN ('waiting', 'queued')", ""),
        ("\n  AND fencerow.jobs.state IN ('waiting', 'queued')", ""),
    ),
)
"""The same guard on purpose twice: what is locked is told of, and what is changed says itself in which states."""


def new_arguments(_: str) -> NewArguments:
    return NewArguments(NEW, 2)


ARGUMENTS = JobChange(arguments=new_arguments)


def change(wanted: JobChange = ARGUMENTS, job_id: str = JOB) -> Operation[JobChanged]:
    return changes.change(job_id, wanted, actor="someone")


def honest(story: Story, name: str = "change") -> bool:
    """Whether it was changed. A refusal may be overtaken, but named a state in which nothing can be changed."""
    answer = story.results[name]
    if isinstance(answer, JobChanged):
        return True
    assert isinstance(answer, IllegalMove), answer
    assert answer.state not in IDLE, f"refused because the job was {answer.state}, which can be changed"
    return False


# Claim.


def claiming(name: str, holder: str, *, limit: int = 1) -> Actor:
    """A worker that claims and succeeds; returns the arguments that it ran with, by the job."""

    def script(_: Any) -> Script:
        claimed = yield claim(holder, limit)
        for job in claimed:
            yield succeed(holder, job.attempt, job.id)
        return {job.id: (bytes(job.args).decode(), bytes(job.options).decode()) for job in claimed}

    return Actor(name, script)


def runs_with_what_was_told(story: Story) -> None:
    changed, ran = honest(story), story.results["worker"].get(JOB)
    record = story.run(store.read([JOB]))[JOB]
    if changed:
        assert record.args == {"n": 2}
        assert ran in (None, (NEW, '{"args_version":2}')), "a running job was changed under its holder"
    else:
        assert (ran, record.args) == (("{}", "null"), {})
    kinds = [each.kind for each in story.run(looking.events(JOB))]
    assert kinds.count("changed") == int(changed)


change_claim = Scenario(
    "change × claim × succeed", with_jobs(), [doing("change", change()), claiming("worker", FIRST)],
    runs_with_what_was_told,
)  # fmt: skip


@named(61)
def test_a_job_runs_as_it_was_or_as_it_was_changed(race: Race) -> None:
    race(change_claim)


@named(61)
def test_a_running_job_is_changed_without_the_guards(race: Race) -> None:
    race.turns_red(change_claim, *BOTH_GUARDS)


def each_runs_with_what_was_told(story: Story) -> None:
    for job_id, done in story.results["change"].items():
        ran = story.results["worker"].get(job_id)
        if done.outcome == "changed":
            assert ran in (None, (NEW, '{"args_version":2}')), "a running job was changed under its holder"
        else:
            assert isinstance(done.error, IllegalMove) and done.error.state not in IDLE
            assert ran == ("{}", "null")


change_many = Scenario(
    "change of many × claim × succeed",
    with_jobs(new_job(JOB), new_job(OTHER_JOB)),
    [many("change", ChangeMany("someone", None, ARGUMENTS)), claiming("worker", FIRST, limit=2)],
    each_runs_with_what_was_told,
)


@named(61)
def test_each_of_many_runs_as_it_was_or_as_it_was_changed(race: Race) -> None:
    race(change_many)


@named(61)
def test_a_running_one_of_many_is_changed_without_the_guards(race: Race) -> None:
    race.turns_red(change_many, *BOTH_GUARDS)


# Cancel, expire, retention.


def ended_as_told(story: Story) -> None:
    changed = honest(story)
    record = story.run(store.read([JOB]))[JOB]
    assert record.state in FINAL
    assert record.priority == (5 if changed else 0)


change_cancel = Scenario(
    "change × cancel",
    with_jobs(),
    [doing("change", change(JobChange(priority=5))), doing("cancel", cancel())],
    ended_as_told,
)


def expiring() -> Script:
    yield from with_jobs(new_job(expires_s=5.0))()
    yield later(6)


change_expire = Scenario(
    "change × expire",
    expiring,
    [
        doing("change", change(JobChange(priority=5))),
        # A row that somebody locks is left for the next sweep.
        doing("expire", *[store.expire(limit=9, actor="reaper")] * 2),
    ],
    lambda story: ended_as_told(story) if state(story) in FINAL else None,
)


@named(61)
@pytest.mark.parametrize("raced", [change_cancel, change_expire], ids=lambda raced: raced.name)
def test_a_job_that_ends_is_changed_before_or_not_at_all(race: Race, raced: Scenario) -> None:
    race(raced)


# Reclaim, retry, revive: the job comes back to its queue.


def dead() -> Script:
    """The job runs in a worker that is silent for longer than its lease."""
    yield from with_running()()
    yield later(LEASE_S + 1)
    yield store.renew(holder=SECOND)


def back_and_changed_or_not(story: Story) -> None:
    changed = honest(story)
    record = story.run(store.read([JOB]))[JOB]
    assert (record.state, record.attempt, record.priority) == (State.QUEUED, 1, 5 if changed else 0)
    assert record.suspect == ("sweep" in story.results)


change_reclaim = Scenario(
    "change × reclaim",
    dead,
    [doing("change", change(JobChange(priority=5))), Actor("sweep", lambda _: sweep())],
    back_and_changed_or_not,
)
change_retry = Scenario(
    "change × retried",
    with_running(),
    [doing("change", change(JobChange(priority=5))), doing("worker", requeue(FIRST))],
    back_and_changed_or_not,
)


def finished() -> Script:
    yield from with_running()()
    yield succeed(FIRST)


change_revive = Scenario(
    "change × revive",
    finished,
    [doing("change", change(JobChange(priority=5))), doing("reviver", revive())],
    back_and_changed_or_not,
)


@named(61)
@pytest.mark.parametrize("raced", [change_reclaim, change_retry, change_revive], ids=lambda raced: raced.name)
def test_a_job_that_comes_back_is_changed_after_or_not_at_all(race: Race, raced: Scenario) -> None:
    race(raced)


# Two changes.


def one_after_the_other(story: Story) -> None:
    assert honest(story, "first") and honest(story, "second")
    told = [each.detail["priority"] for each in story.run(looking.events(JOB)) if each.kind == "changed"]
    assert len(told) == 2
    assert (told[0][0], told[0][1]) == (0, told[1][0]), f"the timeline has a gap: {told}"
    found = fence(story)
    assert found is not None and found.state is State.QUEUED
    assert story.run(store.read([JOB]))[JOB].priority == told[1][1]


change_change = Scenario(
    "change × change",
    with_jobs(),
    [
        doing("first", change(JobChange(priority=5))),
        doing("second", change(JobChange(priority=7, arguments=new_arguments))),
    ],
    one_after_the_other,
)


@named(61)
def test_two_changes_come_one_after_the_other(race: Race) -> None:
    race(change_change)


@named(61)
@in_modes("plain", "held")
def test_the_timeline_has_a_gap_when_nobody_locks(race: Race) -> None:
    race.turns_red(change_change, Cut("lock_idle", ("\nFOR UPDATE", "")))


# Hand-over.


def one_has_the_turn() -> Script:
    yield register(FIRST)
    yield store.submit_gated([of_a_key(JOB), of_a_key(OTHER_JOB)])
    yield handing.hand_over()


def nobody_has_the_turn() -> Script:
    yield store.submit_gated([of_a_key(JOB, delay_s=600.0)])
    yield handing.hand_over()


def one_at_a_time(story: Story) -> None:
    honest(story)
    story.run(handing.hand_over())
    turned = [each for each in (JOB, OTHER_JOB) if state(story, each) in (State.QUEUED, State.RUNNING)]
    assert len(turned) <= 1, "two of a key have a turn"
    # Whoever is put off blocks nobody.
    assert turned or state(story, OTHER_JOB) in FINAL, "a turn is free, and nobody has it who is due"


change_off = Scenario(
    "change that puts off × hand_over × claim × succeed",
    one_has_the_turn,
    [
        doing("change", change(JobChange(delay_s=600.0))),
        doing("hand_over", handing.hand_over()),
        claiming("worker", FIRST),
    ],
    one_at_a_time,
)


def nobody_is_stranded(story: Story) -> None:
    assert honest(story)
    story.run(handing.hand_over())
    assert state(story) == State.QUEUED, "it is due, a turn is free, and nobody looks"


change_on = Scenario(
    "change to run now × hand_over",
    nobody_has_the_turn,
    [doing("change", change(JobChange(at_once=True))), doing("hand_over", handing.hand_over())],
    nobody_is_stranded,
)


def to_another_key(_: str) -> NewArguments:
    def column_of(name: str, args: str) -> str | None:
        return ("another" if args == NEW else "k") if name == "exclusive" else None

    return NewArguments(NEW, 2, column_of)


def both_have_a_turn() -> Script:
    yield store.submit_gated([of_a_key(JOB), new_job(OTHER_JOB, exclusive="another"), of_a_key(THIRD_JOB)])
    yield handing.hand_over()


def one_of_each_key(story: Story) -> None:
    assert honest(story)
    assert state(story, OTHER_JOB) == State.QUEUED
    assert state(story) == State.WAITING, "two of a key have a turn"
    story.run(handing.hand_over())
    assert state(story, THIRD_JOB) == State.QUEUED, "a turn is free, and nobody looks"
    story.run(cancel(OTHER_JOB))
    story.run(handing.hand_over())
    assert state(story) == State.QUEUED, "nobody else needs its new turn"


change_key = Scenario(
    "change of the key × hand_over",
    both_have_a_turn,
    [
        doing("change", change(JobChange(arguments=to_another_key))),
        doing("hand_over", handing.hand_over()),
    ],
    one_of_each_key,
)


@named(61)
def test_who_gets_another_key_waits_for_its_turn_and_leaves_the_one_it_had(race: Race) -> None:
    race(change_key)


@named(61)
def test_two_of_a_key_run_where_a_turn_goes_along(race: Race) -> None:
    kept = ("WHEN wanted.elsewhere THEN CASE WHEN", "WHEN false THEN CASE WHEN")
    race.turns_red(change_key, Cut("change", kept, kept))


@named(61)
def test_a_turn_goes_on_when_its_job_is_put_off(race: Race) -> None:
    race(change_off)


@named(61)
def test_who_waits_and_is_to_run_now_gets_the_turn(race: Race) -> None:
    race(change_on)


@named(61)
def test_it_is_stranded_where_it_does_not_arrive_anew(race: Race) -> None:
    race.turns_red(
        change_on,
        Cut(
            "change",
            (
                "FROM moved WHERE moved.state = 'waiting' AND moved.exclusive IS NOT NULL",
                "FROM moved WHERE false",
            ),
            ("WHERE +job.state = 'waiting' AND +job.exclusive IS NOT NULL", "WHERE false"),
        ),
    )
