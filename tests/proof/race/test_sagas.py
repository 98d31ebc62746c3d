"""Races of steps that can be undone: what is remembered while the job ends is undone, or is not remembered."""

from __future__ import annotations

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.errors import RevivedTooSoon
from fencerow_proof.arena.actor import Script, doing
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.crash.sagas import REMEMBER, UNDO, remembered
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    acting,
    cancel,
    fail,
    new_job,
    overdue,
    revive,
    suspend,
    with_running,
)  # fmt: skip


def late() -> Script:
    yield from with_running(new_job(timeout_s=1.0, attempts_max=1))()
    yield overdue()


def remembering() -> Script:
    return (yield REMEMBER)


def remembering_and_sleeping() -> Script:
    held = yield REMEMBER
    yield suspend(FIRST)
    return held


def what_is_remembered_is_undone(story: Story) -> None:
    known = story.run(store.read_fences([JOB, UNDO]))
    if known[JOB].state in ("failed", "cancelled"):
        held = story.results["worker"]
        assert (UNDO in known) == held, f"remembered: {held}; a compensation: {known.get(UNDO)}"


timed_out = Scenario(
    "remember with an undo × time_out", late,
    [acting("worker", remembering), doing("clock", store.time_out(limit=9, delay_s=1.0, actor=None))],
    what_is_remembered_is_undone,
)  # fmt: skip
cancelled = Scenario(
    "remember with an undo and sleep × cancel", with_running(),
    [acting("worker", remembering_and_sleeping), doing("ada", cancel())],
    what_is_remembered_is_undone,
)  # fmt: skip


@named(92)
@pytest.mark.parametrize("raced", [timed_out, cancelled], ids=lambda raced: raced.name)
def test_what_is_remembered_while_the_job_ends_is_undone(race: Race, raced: Scenario) -> None:
    race(raced, share=0.3)


@named(92)
@in_modes("plain", "held")
def test_a_step_stands_without_the_lock_of_who_remembers(race: Race) -> None:
    race.turns_red(timed_out, Cut("remember_step", ("FOR SHARE", "")))


def both_have_ended() -> Script:
    yield from remembered(fail(FIRST))()
    yield cancel(UNDO)


def one_is_revived(story: Story) -> None:
    known = story.run(store.read_fences([JOB, UNDO]))
    assert [known[JOB].state, known[UNDO].state].count(State.QUEUED) == 1, "both run at once, or none"
    assert [type(story.results[name]) for name in ("job", "undo")].count(RevivedTooSoon) == 1


revived = Scenario(
    "revive × revive of the compensation", both_have_ended,
    [doing("job", revive()), doing("undo", revive(UNDO))],
    one_is_revived,
)  # fmt: skip


@named(92)
def test_a_job_or_its_compensation_is_revived(race: Race) -> None:
    race(revived)


UNLOCKED = ("FOR UPDATE) AS held", ") AS held")
UNASKED = ("NULL, NULL) IS NULL\n    RETURNING", "NULL, NULL) IS NULL OR true\n    RETURNING")


@named(92)
@in_modes("plain", "held")
@pytest.mark.parametrize(
    "cuts", [[Cut("lock_finished", UNLOCKED), Cut("revive", UNLOCKED)], [Cut("revive", UNASKED)]]
)
def test_both_are_revived_without_the_guards(race: Race, cuts: list[Cut]) -> None:
    race.turns_red(revived, *cuts)
