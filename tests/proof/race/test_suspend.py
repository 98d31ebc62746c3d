"""Races of an attempt that suspends its job: the end of it all is as if one had come after the other."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.steps import memory
from fencerow.steps.memory import Fencing, Waiting
from fencerow.steps.signals import signal
from fencerow.steps.waker import wake_due
from fencerow.turns import handing
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    OTHER_JOB,
    SECOND,
    acting,
    anything,
    cancel,
    claim,
    fence,
    of_a_key,
    register,
    state,
    stop,
    suspend,
    sweep,
    uid,
    with_running,
)

WAKE = store.wake([JOB], actor="someone")


def suspending_or_stopping() -> Script:
    """What a worker does with an attempt that wants to wait: a cancel that was asked comes first."""
    if not (yield suspend(FIRST)).ids:
        yield stop(FIRST)


def is_cancelled(story: Story) -> None:
    story.run(stop(FIRST))  # a worker goes on with what it found locked
    assert state(story) == State.CANCELLED, "somebody waits for ever for the end of a cancelled job"


def waits_or_is_queued(story: Story) -> None:
    found = fence(story)
    assert found is not None
    assert (found.state, found.holder) in ((State.WAITING, None), (State.QUEUED, None))


def the_newer_attempt_runs(story: Story) -> None:
    """The stale one must not suspend what a newer attempt runs."""
    found = fence(story)
    assert found is not None
    if story.results["second"]:
        assert (found.state, found.holder, found.attempt) == (State.RUNNING, SECOND, 2)


def claimed_again() -> Script:
    return (yield claim(SECOND))


def two_of_a_key() -> Script:
    yield register(FIRST)
    yield store.submit_gated([of_a_key(JOB), of_a_key(OTHER_JOB)])
    yield handing.hand_over()
    yield claim(FIRST)


def the_other_has_the_turn(story: Story) -> None:
    story.run(suspend(FIRST))  # a worker goes on with what it found locked
    story.run(handing.hand_over())
    states = [state(story), state(story, OTHER_JOB)]
    assert states.count("queued") == 1, f"a turn is free, and nobody has it: {states}"


with_cancel = Scenario(
    "suspend × cancel", with_running(),
    [acting("worker", suspending_or_stopping), doing("client", cancel())], is_cancelled,
)  # fmt: skip
with_wake = Scenario(
    "suspend × wake × wake", with_running(),
    [doing("worker", suspend(FIRST)), doing("waker", WAKE), doing("other", WAKE)],
    anything,
)  # fmt: skip
with_reclaim = Scenario(
    "a zombie suspends × sweep × claim", with_running(),
    [doing("worker", suspend(FIRST)), acting("reaper", sweep), acting("second", claimed_again)],
    the_newer_attempt_runs,
)  # fmt: skip
with_turns = Scenario(
    "suspend × wake × hand_over", two_of_a_key,
    [doing("worker", suspend(FIRST)), doing("waker", WAKE), doing("hand", handing.hand_over(["key:k"]))],
    the_other_has_the_turn,
)  # fmt: skip


@named(76)
@pytest.mark.parametrize(
    "raced", [with_cancel, with_wake, with_reclaim, with_turns], ids=lambda raced: raced.name
)
def test_a_suspended_job_is_nobodys(race: Race, raced: Scenario) -> None:
    race(raced, share=0.3)


@named(76)
def test_a_cancel_is_forgotten_without_the_guard(race: Race) -> None:
    race.turns_red(
        with_cancel,
        Cut(
            "suspend",
            ("AND job.cancel_requested_at IS NULL", ""),
            ("AND fencerow.jobs.cancel_requested_at IS NULL", ""),
        ),
    )


@named(76)
def test_a_turn_is_forgotten_where_nobody_tells_that_it_is_free(race: Race) -> None:
    race.turns_red(
        with_turns,
        Cut(
            "suspend",
            ("SELECT 'key:' || moved.exclusive", "SELECT 'key:another'"),
            ("SELECT 'key:' || job.exclusive", "SELECT 'key:another'"),
        ),
    )


# --- what the job waits for comes meanwhile ----------------------------------------------------------


def about_to_wait() -> Script:
    """A setup: the first attempt has written that it waits for a signal, a minute at most."""
    yield from with_running()()
    yield memory.wait(
        Fencing(JOB, FIRST, 1), Waiting(name="wait", seq=1, beside=False, signal="approved", delay_s=60.0)
    )


def sent(number: int, name: str = "approved") -> Operation[Any]:
    return signal(uid(900 + number), JOB, name, str(number), actor="someone")


def time_passes() -> Script:
    yield later(61.0)
    return (yield wake_due(limit=10, actor="worker"))


def is_woken(story: Story) -> None:
    story.run(suspend(FIRST))  # a worker goes on with what it found locked
    assert state(story) == State.QUEUED, "what the job waits for is there, and it sleeps on"


def is_woken_by_the_next_look(story: Story) -> None:
    story.run(suspend(FIRST))
    story.run(wake_due(limit=10, actor="worker"))
    assert state(story) == State.QUEUED, "its time is over, and it sleeps on"


signalled = Scenario(
    "suspend × signal", about_to_wait, [doing("worker", suspend(FIRST)), doing("client", sent(1))], is_woken
)
two_signals = Scenario(
    "suspend × signal × signal", about_to_wait,
    [doing("worker", suspend(FIRST)), doing("client", sent(1)), doing("other", sent(2, "another"))], is_woken,
)  # fmt: skip
timed_out = Scenario(
    "suspend × its time comes", about_to_wait, [doing("worker", suspend(FIRST)), acting("waker", time_passes)],
    is_woken_by_the_next_look,
)  # fmt: skip


@named(76)
@pytest.mark.parametrize("raced", [signalled, two_signals, timed_out], ids=lambda raced: raced.name)
def test_no_wake_up_is_lost(race: Race, raced: Scenario) -> None:
    race(raced)


@named(76)
@in_modes("plain", "held")
def test_a_wake_up_is_lost_without_the_lock(race: Race) -> None:
    race.turns_red(signalled, Cut("lock_waiters", ("FOR UPDATE", "")))


@named(76)
def test_a_wake_up_is_lost_without_the_later_look(race: Race) -> None:
    blind = ("sent.taken_as IS NULL", "sent.taken_as IS NULL AND false")
    race.turns_red(signalled, Cut("wake", blind, blind))


# --- two waits of one attempt for the same signal -----------------------------------------------------


def sent_once() -> Script:
    yield from with_running()()
    yield sent(1)


def waiting_as(name: str, seq: int) -> Operation[Any]:
    wanted = Waiting(name=name, seq=seq, beside=True, signal="approved")
    return memory.wait(Fencing(JOB, FIRST, 1), wanted)


def is_taken_once(story: Story) -> None:
    came = [story.results[who].result for who in ("one", "other")]
    assert came.count(None) == 1, f"one signal was sent, and two waits brought {came}"


taken_twice = Scenario(
    "wait × wait for one signal", sent_once,
    [doing("one", waiting_as("first", 1)), doing("other", waiting_as("second", 2))], is_taken_once,
)  # fmt: skip


@named(76)
def test_a_signal_is_taken_once(race: Race) -> None:
    race(taken_twice)
