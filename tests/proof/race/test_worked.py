"""Races of what an endpoint answers later: one answer counts, it counts for its attempt alone, and nobody sleeps on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.model.state import State
from fencerow.db.run import Operation, Steps, execute, operation
from fencerow.web.worked.answers import Ticket, answer
from fencerow.web.worked.attempts import Answered, Fencing, Overdue, close, defer, open_attempt
from fencerow.web.worked.errors import AttemptOver
from fencerow.web.worked.waker import wake_overdue
from fencerow_proof.arena.actor import Script, doing, later
from fencerow_proof.arena.race import Scenario, Story
from tests.proof.race.conftest import Cut, Race, in_modes
from tests.proof.race.named import named
from tests.proof.race.people import (
    FIRST,
    JOB,
    SECOND,
    acting,
    cancel,
    claim,
    state,
    suspend,
    sweep,
    with_running,
)

ANSWER_S = 60.0
MINE = Fencing(JOB, FIRST, 1)
TICKET = Ticket(JOB, 1, "a" * 64)
NO_LOCK = Cut("lock_waiters", ("FOR UPDATE", ""))


def opening(fencing: Fencing, digest: str) -> Operation[Any]:
    return open_attempt(fencing, digest, answer_s=ANSWER_S, silent_s=ANSWER_S)


def sent() -> Script:
    """A setup: the first attempt was sent to its endpoint."""
    yield from with_running()()
    yield opening(MINE, TICKET.digest)


def deferred() -> Script:
    """A setup: the endpoint answers later."""
    yield from sent()
    yield defer(MINE)


def waits() -> Script:
    """A setup: the job is suspended until then."""
    yield from deferred()
    yield suspend(FIRST)


def answering(text: str) -> Callable[[], Script]:
    def script() -> Script:
        try:
            yield answer(TICKET, "succeeded", text)
        except AttemptOver:
            return None
        return text

    return script


def taking() -> Script:
    """What the next worker does: it claims, and looks what was answered before it sends anything."""
    taken = yield claim(SECOND)
    if not taken:
        return "nothing"
    opened = yield opening(Fencing(JOB, SECOND, taken[0].attempt), "b" * 64)
    return None if opened is None else opened.before


@operation(alone=True, writes="")
def answer_of_first() -> Steps[str | None]:
    """The outcome of the first attempt."""
    rows = yield from execute("worked_standing", id=JOB, attempt=1)
    return None if rows[0][0] is None else str(rows[0][0])


# --- answer × answer, and the reply -------------------------------------------------------------------


def closing() -> Script:
    found = yield close(MINE)
    return found.answer if found is not None else None


def one_counts(story: Story) -> None:
    told = [story.results["one"], story.results["other"]]
    assert len([each for each in told if each is not None]) == 1, f"of two answers counted {told}"


def the_reply_knows(story: Story) -> None:
    told, found = story.results["endpoint"], story.results["worker"]
    assert told == found, f"the endpoint was told of {told}, and its worker ends the job by {found}"


two = Scenario(
    "answer × answer", deferred,
    [acting("one", answering('"one"')), acting("other", answering('"other"'))], one_counts,
)  # fmt: skip
reply = Scenario(
    "answer × the reply to the request", sent,
    [acting("endpoint", answering('"one"')), acting("worker", closing)], the_reply_knows,
)  # fmt: skip


@named(94)
@pytest.mark.parametrize("raced", [two, reply], ids=lambda raced: raced.name)
def test_one_answer_counts(race: Race, raced: Scenario) -> None:
    race(raced, share=0.3)


@named(94)
def test_two_answers_count_without_the_guard(race: Race) -> None:
    race.turns_red(two, Cut("answer_worked", *2 * [("AND sent.answered_at IS NULL", "")]))


@named(94)
def test_the_reply_forgets_an_answer_without_the_guard(race: Race) -> None:
    race.turns_red(
        reply, Cut("close_worked", ("AND sent.answered_at IS NULL", ""), ("AND answered_at IS NULL", ""))
    )


# --- answer × suspension ------------------------------------------------------------------------------


def is_woken(story: Story) -> None:
    story.run(suspend(FIRST))  # a worker goes on with what it found locked
    assert story.results["endpoint"] is not None
    assert state(story) == State.QUEUED, "the answer is there, and the job sleeps on"


suspending = Scenario(
    "answer × suspend", deferred,
    [acting("endpoint", answering('"one"')), doing("worker", suspend(FIRST))], is_woken,
)  # fmt: skip


@named(94)
def test_no_answer_is_slept_through(race: Race) -> None:
    race(suspending)


@named(94)
@in_modes("plain", "held")
def test_an_answer_is_slept_through_without_the_lock(race: Race) -> None:
    race.turns_red(suspending, NO_LOCK)


# --- answer × the end of its time, or of its lease ----------------------------------------------------


def time_passes() -> Script:
    yield later(ANSWER_S + 1)
    yield wake_overdue(limit=10)
    return (yield from taking())


def reaped() -> Script:
    yield from sweep()
    return (yield from taking())


def the_next_attempt_knows(story: Story) -> None:
    """What was taken reaches the next attempt; what was not, does not."""
    told, found = story.results["endpoint"], story.results["second"]
    if told is None:
        assert not isinstance(found, Answered), f"the answer was refused, and counts: {found}"
    elif found != "nothing":  # else the row was locked, and whoever claims later finds it
        assert isinstance(found, Answered), f"the answer was taken, and the next attempt has {found}"


def overdue_or_answered(story: Story) -> None:
    the_next_attempt_knows(story)
    if story.results["endpoint"] is None:
        assert story.results["second"] in (Overdue(1), "nothing")


overdue = Scenario(
    "answer × its time is over × claim", waits,
    [acting("endpoint", answering('"one"')), acting("second", time_passes)], overdue_or_answered,
)  # fmt: skip
reclaimed = Scenario(
    "answer × reclaim × claim", sent,
    [acting("endpoint", answering('"one"')), acting("second", reaped), doing("clock", later(31.0))],
    the_next_attempt_knows,
)  # fmt: skip


@named(94)
@pytest.mark.parametrize("raced", [overdue, reclaimed], ids=lambda raced: raced.name)
def test_a_late_answer_changes_nothing(race: Race, raced: Scenario) -> None:
    race(raced, share=0.3)


@named(94)
def test_a_late_answer_counts_without_the_fence(race: Race) -> None:
    race.turns_red(
        overdue,
        Cut("answer_worked", *2 * [("AND job.attempt = sent.attempt", "")]),
        Cut(
            "answer_worked",
            ("AND sent.until > (SELECT fencerow.now())", ""),
            ("AND sent.until > fencerow.now()", ""),
        ),
    )


# --- answer × cancel ----------------------------------------------------------------------------------


def cancelling() -> Script:
    """Cancels, and looks then whether an answer had come before."""
    yield cancel()
    return (yield answer_of_first())


def the_first_wins(story: Story) -> None:
    if story.results["client"] is None:
        assert story.results["endpoint"] is None, "it was cancelled first, and the answer counts"


cancelled = Scenario(
    "answer × cancel of a running job", deferred,
    [acting("endpoint", answering('"one"')), acting("client", cancelling)], the_first_wins,
)  # fmt: skip
cancelled_asleep = Scenario(
    "answer × cancel of a suspended job", waits,
    [acting("endpoint", answering('"one"')), acting("client", cancelling)], the_first_wins,
)  # fmt: skip


@named(94)
@pytest.mark.parametrize("raced", [cancelled, cancelled_asleep], ids=lambda raced: raced.name)
def test_a_cancel_comes_before_the_answer_or_after_it(race: Race, raced: Scenario) -> None:
    race(raced, share=0.3)


@named(94)
def test_an_answer_counts_after_the_cancel_without_the_guard(race: Race) -> None:
    race.turns_red(cancelled, Cut("answer_worked", *2 * [("AND job.cancel_requested_at IS NULL", "")]))
