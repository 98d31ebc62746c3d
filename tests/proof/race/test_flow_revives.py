"""Races of a flow's revive: none of its jobs waits for what nobody will run, whoever moves the others meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fencerow.core.errors import FencerowError
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.flows.errors import FlowEnded
from fencerow.flows.graph import Policy
from fencerow.flows.looking import count_flow_jobs, read_flow
from fencerow.flows.moving import (
    BEFORE_ALL,
    BEHIND_ALL,
    RevivedPortion,
    ask_flow_cancel,
    live_flow_jobs,
    revive_portion,
)
from fencerow.flows.removal import purge
from fencerow_proof.arena.actor import Script, doing
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.crash.sagas import REMEMBER, UNDO
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    THIRD_JOB,
    acting,
    cancel,
    claim,
    fail,
    revive,
    state,
    succeed,
)  # fmt: skip
from tests.proof.race.test_flows import (
    ADVANCE,
    FLOW,
    KEPT_S,
    has_failed,
    one_has_ended,
    running,
    told,
    with_name,
)

LIVE = (State.WAITING, State.QUEUED, State.RUNNING)


def portion(after: int = BEFORE_ALL, *, limit: int = 9, begun: bool = False) -> Operation[RevivedPortion]:
    return revive_portion(FLOW, after=after, limit=limit, begun=begun, actor=None, reason=None)


def in_portions() -> Script:
    """Revive the flow, one job at a time, as `reviving_flow` does; how many were revived."""
    after, revived = BEFORE_ALL, 0
    try:
        while (done := (yield portion(after, limit=1, begun=revived > 0))).found:
            after, revived = done.after, revived + len(done.queued) + len(done.waiting)
    except FencerowError as error:
        if not revived:
            return error
    return revived


def nobody_waits_for_ever(story: Story) -> None:
    """Once all ends are told, the third waits only for one that runs or will run; and the flow has ended or goes on."""
    told(story)
    before = [state(story, each) for each in (JOB, OTHER_JOB)]
    if state(story, THIRD_JOB) == State.WAITING:
        assert any(each in LIVE for each in before), f"the third waits for ever: before it are {before}"
    flow, counts = story.run(read_flow(FLOW)), story.run(count_flow_jobs(FLOW))
    assert flow is not None and (flow.ended_at_us is None) == (counts.ended < counts.total)


# Two people; a person and a worker.


def both_have_failed() -> Script:
    """A flow of which two jobs have failed, and the third was cancelled: three portions."""
    yield from one_has_ended(failed=True)()
    yield fail(FIRST, 1, OTHER_JOB)
    yield ADVANCE
    yield ADVANCE


def each_is_revived_once(story: Story) -> None:
    nobody_waits_for_ever(story)
    found = [state(story, each) for each in (JOB, OTHER_JOB, THIRD_JOB)]
    assert found == [State.QUEUED, State.QUEUED, State.WAITING], f"{found}"
    assert sum(each for each in story.results.values() if isinstance(each, int)) == 3, f"{story.results}"


def running_and_failed() -> Script:
    """One has failed, the other has succeeded, and nobody has told the third."""
    yield from one_has_ended(failed=True)()
    yield succeed(FIRST, 1, OTHER_JOB)


def one_has_failed() -> Script:
    """And the third was cancelled for it: two portions."""
    yield from running_and_failed()
    yield ADVANCE
    yield ADVANCE


def half_revived() -> Script:
    """And the first portion is revived."""
    yield from one_has_failed()
    yield portion(limit=1)


def fails_again() -> Script:
    for job in (yield claim(FIRST, limit=3)):
        assert job.id != THIRD_JOB, "it is claimed before those that it waits for have ended"
        yield fail(FIRST, job.attempt, job.id)
    yield ADVANCE


two_people = Scenario(
    "revive of a flow × revive of the flow, in portions", both_have_failed,
    [acting("ada", in_portions), acting("bob", in_portions)],
    each_is_revived_once,
)  # fmt: skip
failing = Scenario(
    "the second portion of a revive × claim, fail, advance", half_revived,
    [doing("person", portion(0, begun=True)), acting("worker", fails_again)],
    nobody_waits_for_ever,
)  # fmt: skip


@named(79)
@pytest.mark.parametrize("raced", [two_people, failing], ids=with_name)
def test_nobody_waits_for_ever_in_a_flow_that_is_revived_in_portions(race: Race, raced: Scenario) -> None:
    race(raced, share=0.5)


AGAIN = ("AND before.told", "AND false")


@named(79)
def test_it_does_where_an_end_is_not_told_once_more(race: Race) -> None:
    race.turns_red(failing, Cut("tell_ends_before", AGAIN, ("AND before.told = 1", "AND false")))


# Whoever tells ends meanwhile.


def all_run_again(story: Story) -> None:
    nobody_waits_for_ever(story)
    assert (state(story, JOB), state(story, THIRD_JOB)) == (State.QUEUED, State.WAITING)


untold = Scenario(
    "revive of a flow × advance",
    running_and_failed,
    [acting("person", in_portions), doing("waker", ADVANCE)],
    all_run_again,
)


@named(79)
def test_a_revive_meets_who_tells_the_failure(race: Race) -> None:
    race(untold)


# A cancel.


def calls_off() -> Script:
    """Cancel the flow, as `cancelling_flow` does; whether it had not ended."""
    if not (yield ask_flow_cancel(FLOW, actor=None)):
        return False
    for each in (yield live_flow_jobs(FLOW, before=BEHIND_ALL, limit=9)).ids:
        yield cancel(each)
    return True


def the_cancel_holds(story: Story) -> None:
    nobody_waits_for_ever(story)
    if story.results["bob"] is True:
        assert state(story, THIRD_JOB) == State.CANCELLED, "a portion has taken the cancel back"


def third_was_cancelled() -> Script:
    """The third may run after both have ended; its flow was cancelled before they had."""
    yield from one_has_ended(Policy.AFTER, failed=True)()
    yield cancel(THIRD_JOB)
    yield succeed(FIRST, 1, OTHER_JOB)
    yield ADVANCE


called_off = Scenario(
    "revive of a flow in portions × cancel of it", third_was_cancelled,
    [acting("ada", in_portions), acting("bob", calls_off)],
    the_cancel_holds,
)  # fmt: skip
ASKED = ("flow.cancel_requested_at IS NOT NULL", "false")


@named(79)
def test_a_cancel_between_two_portions_holds(race: Race) -> None:
    race(called_off)


@named(79)
def test_a_portion_takes_it_back_without_asking(race: Race) -> None:
    race.turns_red(called_off, Cut("lock_flow", ASKED, ASKED))


# Compensations.


def other_is_undone() -> Script:
    """As `both_have_failed`, and the compensation of the first has ended."""
    yield from running()()
    yield REMEMBER
    yield fail(FIRST)
    yield fail(FIRST, 1, OTHER_JOB)
    yield cancel(UNDO)
    yield ADVANCE
    yield ADVANCE


def undoing_begins() -> Script:
    """Both run, and the first can be undone; the other has failed."""
    yield from running()()
    yield REMEMBER
    yield fail(FIRST, 1, OTHER_JOB)
    yield ADVANCE


def one_of_both_lives(story: Story) -> None:
    nobody_waits_for_ever(story)
    both = [state(story, each) for each in (JOB, UNDO)]
    assert sum(each in LIVE for each in both) <= 1, f"a job and its compensation live at once: {both}"


undone = Scenario(
    "revive of a flow in portions × revive of a compensation", other_is_undone,
    [acting("person", in_portions), doing("other", revive(UNDO))],
    one_of_both_lives,
)  # fmt: skip
begun = Scenario(
    "revive of a flow in portions × fail that queues a compensation", undoing_begins,
    [acting("person", in_portions), doing("worker", fail(FIRST))],
    one_of_both_lives,
)  # fmt: skip
UNLOCKED = ("FOR UPDATE) AS held", ") AS held")
GUARDS = ("flow_jobs_too_soon", "lock_free_finished", "revive", "lock_finished")


@named(79)
@pytest.mark.parametrize("raced", [undone, begun], ids=with_name)
def test_no_portion_revives_a_job_beside_its_compensation(race: Race, raced: Scenario) -> None:
    race(raced)


@in_modes("plain", "held")
@named(79)
def test_a_portion_does_without_the_lock_of_the_saga(race: Race) -> None:
    race.turns_red(undone, *(Cut(each, UNLOCKED) for each in GUARDS))


# A job of it is revived or deleted by itself.


def whole_or_refused(story: Story) -> None:
    """Who deletes came first, and nothing was changed; or the flow runs again, and nothing was deleted."""
    nobody_waits_for_ever(story)
    is_refused = isinstance(story.results["person"], FlowEnded)
    expected = (None, State.CANCELLED) if is_refused else (State.QUEUED, State.WAITING)
    assert (state(story, JOB), state(story, THIRD_JOB)) == expected


def alone(name: str, *operations: Operation[Any], check: Callable[[Story], None]) -> Scenario:
    actors = [doing("stranger", *operations), doing("person", portion())]
    return Scenario(f"{name} of one job × revive of the flow", has_failed, actors, check)


ALONE: Sequence[Scenario] = [
    alone("revive", store.revive(JOB, actor=None), check=all_run_again),
    alone("delete", store.delete([JOB]), check=whole_or_refused),
]


@named(79)
@pytest.mark.parametrize("raced", ALONE, ids=with_name)
def test_nobody_waits_behind_a_job_that_was_left(race: Race, raced: Scenario) -> None:
    race(raced)


@in_modes("held")
@named(79)
def test_one_is_left_where_nobody_waits_for_its_lock(race: Race) -> None:
    race.turns_red(ALONE[1], Cut("lock_flow_jobs_to_revive", ("FOR UPDATE", "")))


# A purge.


def whole_or_gone(story: Story) -> None:
    """The flow runs again, all of it, or it was forgotten before; then nobody waits for what cannot come."""
    if story.run(read_flow(FLOW)) is None:
        assert state(story, THIRD_JOB) == State.CANCELLED, "it waits, and its flow is gone"
        return
    all_run_again(story)


purge_revive = Scenario(
    "purge of flows × revive of the flow",
    has_failed,
    [doing("purge", purge(age_s=KEPT_S, limit=9)), doing("person", portion())],
    whole_or_gone,
)


@named(79)
def test_a_flow_is_run_again_as_a_whole_or_gone(race: Race) -> None:
    race(purge_revive)


@in_modes("plain", "held")
@named(79)
def test_it_runs_again_in_part_without_the_lock_of_the_flow(race: Race) -> None:
    race.turns_red(purge_revive, Cut("lock_flow", ("FOR UPDATE", "")))
