"""Crashes in what is noted of attempts that endpoints work: an answer that was taken stays, and nobody sleeps on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencerow.core.model.state import FINAL
from fencerow.core.store import store
from fencerow.db.run import Operation
from fencerow.web.worked.answers import answer, beat, progress
from fencerow.web.worked.attempts import NOWHERE, Answered, close, defer, look, purge_worked
from fencerow.web.worked.errors import AttemptOver
from fencerow.web.worked.waker import wake_overdue
from fencerow_proof.arena.actor import Script, later
from fencerow_proof.arena.crash import FAR_S, Case
from tests.proof.race.people import FIRST, JOB, fail, suspend, with_running
from tests.proof.race.test_worked import ANSWER_S, MINE, TICKET, answer_of_first, opening, sent, waits

OPEN = opening(MINE, TICKET.digest)
ANSWER = answer(TICKET, "succeeded", '"done"')
WAKE = wake_overdue(limit=9)
PURGE = purge_worked(NOWHERE, limit=9)


def opens_again() -> Script:
    """The attempt asks again, and its endpoint may answer by that token."""
    yield OPEN
    yield ANSWER
    assert isinstance((yield look(MINE)), Answered)


def answered() -> Script:
    """The endpoint sends its answer again where it does not know: it counts, and the job goes on."""
    yield suspend(FIRST)  # where it is not yet
    try:
        yield ANSWER
    except AttemptOver:
        pass
    assert (yield answer_of_first()) == "succeeded", "it was not answered, and takes nothing"
    yield from _is_awake()


def both_or_neither() -> Script:
    """The endpoint is gone as well: what is kept has woken the job."""
    is_kept = (yield answer_of_first()) is not None
    state = (yield store.read_fences([JOB]))[JOB].state
    assert is_kept == (state != "waiting"), f"the answer is {'' if is_kept else 'not '}kept, the job {state}"
    yield store.wake([JOB], actor=None)


def closes_again() -> Script:
    yield close(MINE)
    try:
        yield ANSWER
    except AttemptOver:
        return
    raise AssertionError("the attempt was over by its reply, and took an answer")


def wakes_when_it_is_over() -> Script:
    yield later(FAR_S)
    yield WAKE
    yield from _is_awake()


def _is_awake() -> Script:
    state = (yield store.read_fences([JOB]))[JOB].state
    assert state not in ("waiting", *FINAL), f"it is {state}: nobody wakes it"


def is_over() -> Script:
    yield from waits()
    yield later(ANSWER_S + 1)


def gone() -> Script:
    """A job was removed, and what was noted of it is there still."""
    yield from sent()
    yield fail(FIRST)
    yield store.delete([JOB])


def nothing_is_left() -> Script:
    yield PURGE
    assert not (yield PURGE).rows


def case(setup: Callable[[], Script], operation: Operation[Any], react: Callable[[], Script]) -> Case:
    return Case(operation.name, setup, operation, react, (JOB,))


WORKED_CASES = [
    case(with_running(), OPEN, opens_again),
    case(sent, defer(MINE), answered),
    case(sent, close(MINE), closes_again),
    case(sent, look(MINE), answered),
    case(waits, ANSWER, answered),
    Case("answer, the endpoint gone", waits, ANSWER, both_or_neither, (JOB,)),
    case(waits, beat(TICKET), wakes_when_it_is_over),
    case(waits, progress(TICKET, percent=50.0, note=None), answered),
    case(is_over, WAKE, wakes_when_it_is_over),
    Case("purge_worked", gone, PURGE, nothing_is_left),
]
