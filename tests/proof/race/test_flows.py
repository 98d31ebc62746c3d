"""Races of flows: who waits is woken or cancelled once, whatever ends beside whatever; no wake-up is lost."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.flows.graph import Policy
from fencerow.flows.looking import read_flow
from fencerow.flows.moving import ask_flow_cancel
from fencerow.flows.storing import Callback, Edge, Member, PlannedFlow, submit_flow
from fencerow.flows.waits import note_flow_wait, wake_waiters
from fencerow.flows.waking import Advanced, advance
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
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
    new_job,
    register,
    state,
    stop,
    succeed,
    suspend,
    uid,
)  # fmt: skip

FLOW, CALLBACK = uid(900), uid(901)
KEPT_S = 100.0
ADVANCE: Operation[Advanced] = advance(actor=None)


def of_a_flow(policy: Policy | None = Policy.NEEDS, *outcomes: str) -> Operation[bool]:
    """Two jobs, and a third that waits for both; without a policy there is no third."""
    ids = (JOB, OTHER_JOB, THIRD_JOB) if policy is not None else (JOB, OTHER_JOB)
    members = [Member(each, each[-1], "send", at, at // 2, is_read=True) for at, each in enumerate(ids)]
    edges = [] if policy is None else [Edge(THIRD_JOB, each, policy) for each in (JOB, OTHER_JOB)]
    callbacks = [Callback(CALLBACK, each, new_job(CALLBACK)) for each in outcomes]
    flow = PlannedFlow(FLOW, "f", "d", FLOW, [new_job(each) for each in ids], members, edges, callbacks)
    return submit_flow(flow, actor=None)


def running(policy: Policy | None = Policy.NEEDS, *outcomes: str) -> Any:
    """A setup: both run, and the third waits."""

    def setup() -> Script:
        yield register(FIRST)
        yield of_a_flow(policy, *outcomes)
        yield claim(FIRST, limit=3)

    return setup


def one_has_ended(policy: Policy | None = Policy.NEEDS, *outcomes: str, failed: bool = False) -> Any:
    def setup() -> Script:
        yield from running(policy, *outcomes)()
        yield (fail if failed else succeed)(FIRST, 1, JOB)

    return setup


def has_failed() -> Script:
    """All is over: one has failed, the other has succeeded, and the third was cancelled."""
    yield from one_has_ended(failed=True)()
    yield succeed(FIRST, 1, OTHER_JOB)
    yield ADVANCE
    yield ADVANCE
    yield later(KEPT_S + 1)


def told(story: Story) -> None:
    """All ends are told that are still to be told."""
    while story.run(ADVANCE).moved:
        pass


def third_is(*expected: State) -> Any:
    """A check: in the end the third is this, and nothing is left to tell."""

    def check(story: Story) -> None:
        told(story)
        found = state(story, THIRD_JOB)
        assert found in expected, f"the third is {found}: its wake-up is lost, or nobody should have woken it"

    return check


def with_name(scenario: Scenario) -> str:
    return scenario.name


# Two ends, two that tell.

two_tell = Scenario(
    "succeed × advance × advance",
    one_has_ended(),
    [doing("worker", succeed(FIRST, 1, OTHER_JOB)), doing("first", ADVANCE), doing("second", ADVANCE)],
    third_is(State.QUEUED),
)
two_ends = Scenario(
    "succeed × succeed × advance",
    running(),
    [doing("one", succeed(FIRST)), doing("other", succeed(FIRST, 1, OTHER_JOB)), doing("waker", ADVANCE)],
    third_is(State.QUEUED),
)


@named(77)
@pytest.mark.parametrize("raced", [two_tell, two_ends], ids=with_name)
def test_of_two_ends_none_is_lost(race: Race, raced: Scenario) -> None:
    race(raced, share=0.5)


UNLOCKED = Cut("lock_flows", ("\nFOR UPDATE SKIP LOCKED", ""))
UNWRITTEN = Cut(
    "succeed",
    ("WHERE member.job_id = ended.id", "WHERE member.job_id = ended.id AND false"),
    ("WHERE member.job_id = ended.id", "WHERE member.job_id = ended.id AND false"),
)


@in_modes("plain", "held")
@named(77)
def test_a_wake_up_is_lost_where_nobody_locks(race: Race) -> None:
    race.turns_red(two_tell, UNLOCKED, Cut("lock_free_waiters", ("\nFOR UPDATE SKIP LOCKED", "")))


def ended(story: Story) -> None:
    told(story)
    found = story.run(read_flow(FLOW))
    assert found is not None and found.state == "succeeded", "all its jobs have ended, and it never ends"


last_two = Scenario(
    "succeed × advance × advance, the last of a flow",
    one_has_ended(None),
    [doing("worker", succeed(FIRST, 1, OTHER_JOB)), doing("first", ADVANCE), doing("second", ADVANCE)],
    ended,
)


@named(77)
def test_the_end_of_a_flow_is_not_lost(race: Race) -> None:
    race(last_two, share=0.5)


@in_modes("plain", "held")
@named(77)
def test_it_is_lost_without_the_lock_of_the_flow(race: Race) -> None:
    race.turns_red(last_two, UNLOCKED)


@named(77)
def test_a_wake_up_is_lost_where_the_end_does_not_write_it(race: Race) -> None:
    race.turns_red(two_ends, UNWRITTEN)


# What a failure means.


def failing(policy: Policy, expected: State) -> Scenario:
    return Scenario(
        f"fail × advance, {policy}",
        one_has_ended(policy),
        [doing("worker", fail(FIRST, 1, OTHER_JOB)), doing("waker", ADVANCE)],
        third_is(expected),
    )


needed, behind = failing(Policy.NEEDS, State.CANCELLED), failing(Policy.AFTER, State.QUEUED)
BROKEN = "AND edge.state IN ('failed', 'cancelled')"
NEEDED = "AND edge.policy = 'needs'"


@named(77)
@pytest.mark.parametrize("raced", [needed, behind], ids=with_name)
def test_each_edge_says_what_a_failure_means(race: Race, raced: Scenario) -> None:
    race(raced)


@named(77)
@pytest.mark.parametrize(("raced", "old"), [(needed, BROKEN), (behind, NEEDED)], ids=["needs", "after"])
def test_it_does_not_without_its_policy(race: Race, raced: Scenario, old: str) -> None:
    new = "AND edge.state = 'none'" if old is BROKEN else ""
    race.turns_red(raced, Cut("look_at_flow_jobs", (old, new), (old, new)))


# Callbacks.


def made_once(story: Story) -> None:
    answers = [story.results["first"], story.results["second"]]
    assert all(isinstance(each, Advanced) for each in answers), f"it was made twice: {answers}"
    try:
        while (more := story.run(ADVANCE)).moved:
            answers.append(more)
    except Exception as error:
        raise AssertionError(f"it is made twice: {error}") from error
    made = [job.id for each in answers for job in each.made]
    assert made == [CALLBACK], f"made: {made}"
    assert state(story, CALLBACK) == State.QUEUED


two_failures = Scenario(
    "fail × advance × advance, one callback",
    one_has_ended(Policy.AFTER, "failed", failed=True),
    [doing("worker", fail(FIRST, 1, OTHER_JOB)), doing("first", ADVANCE), doing("second", ADVANCE)],
    made_once,
)
NOT_MADE = "AND callback.made_at IS NULL"


@named(77)
def test_a_callback_is_made_once(race: Race) -> None:
    race(two_failures, share=0.5)


@named(77)
def test_it_is_made_twice_without_its_mark(race: Race) -> None:
    race.turns_red(two_failures, Cut("take_callbacks", (NOT_MADE, ""), (NOT_MADE, "")))


# People.


by_hand = Scenario(
    "cancel of the one that waits × succeed × advance",
    one_has_ended(),
    [
        doing("person", cancel(THIRD_JOB)),
        doing("worker", succeed(FIRST, 1, OTHER_JOB)),
        doing("waker", ADVANCE),
    ],
    third_is(State.CANCELLED),
)
called_off = Scenario(
    "cancel of the flow × succeed × advance",
    one_has_ended(),
    [
        doing("person", ask_flow_cancel(FLOW, actor=None)),
        doing("worker", succeed(FIRST, 1, OTHER_JOB)),
        doing("waker", ADVANCE),
    ],
    third_is(State.CANCELLED, State.QUEUED),
)


@named(78)
@pytest.mark.parametrize("raced", [by_hand, called_off], ids=with_name)
def test_who_cancels_meets_who_wakes(race: Race, raced: Scenario) -> None:
    race(raced, share=0.5)


# A job that waits for a flow inside of its handler.

PARENT = uid(7)


def parent_waits() -> Script:
    """One job is left of a flow for which a running job has noted that it waits."""
    yield from one_has_ended(None)()
    yield store.submit([new_job(PARENT)])
    yield claim(FIRST)
    yield note_flow_wait(PARENT, FLOW, holder=FIRST, attempt=1)
    yield succeed(FIRST, 1, OTHER_JOB)


def is_woken(story: Story) -> None:
    told(story)
    story.run(WAKE)
    assert state(story, PARENT) == State.QUEUED, "the flow has ended, and nobody wakes its parent"


WAKE = wake_waiters(actor=None)
parent = Scenario(
    "suspend × advance × wake of those that wait for a flow",
    parent_waits,
    [doing("worker", suspend(FIRST, 1, PARENT)), doing("waker", ADVANCE), doing("other", WAKE)],
    is_woken,
)


@named(78)
def test_the_end_of_a_flow_wakes_who_waits_for_it(race: Race) -> None:
    race(parent, share=0.5)


# The last child ends while its parent suspends, and somebody cancels the parent.


def parent_runs() -> Script:
    """One child is left of a flow for which a running job has noted that it waits."""
    yield from one_has_ended(None)()
    yield store.submit([new_job(PARENT)])
    yield claim(FIRST)
    yield note_flow_wait(PARENT, FLOW, holder=FIRST, attempt=1)


def suspends_or_stops() -> Script:
    if not (yield suspend(FIRST, 1, PARENT)).ids:
        yield stop(FIRST, 1, PARENT)


def parent_is_cancelled(story: Story) -> None:
    story.run(stop(FIRST, 1, PARENT))  # a worker goes on with what it found locked
    ended(story)
    story.run(WAKE)
    assert state(story, PARENT) == State.CANCELLED, "a child's end wakes a parent that was cancelled"
    assert state(story, OTHER_JOB) == State.SUCCEEDED


child = Scenario(
    "end of a child × suspend of its parent × cancel of it",
    parent_runs,
    [
        doing("child", succeed(FIRST, 1, OTHER_JOB), ADVANCE, WAKE),
        acting("parent", suspends_or_stops),
        doing("person", cancel(PARENT)),
    ],
    parent_is_cancelled,
)


@named(78)
def test_a_parent_is_cancelled_while_its_child_ends(race: Race) -> None:
    race(child, share=0.5)


@named(78)
def test_it_goes_on_where_a_suspend_asks_for_no_cancel(race: Race) -> None:
    cancelled = (
        ("AND job.cancel_requested_at IS NULL", ""),
        ("AND fencerow.jobs.cancel_requested_at IS NULL", ""),
    )
    race.turns_red(child, Cut("suspend", *cancelled))
