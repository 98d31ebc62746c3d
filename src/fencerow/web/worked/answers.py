"""What an endpoint says of its attempt by the callback: its answer, once; that it is at work; how far it is.

Each locks the job's row first, in a statement of its own. So of an answer, the end of the attempt, a cancel and another
answer one comes first, and the others are told so and change nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from fencerow.core.store.attempts import Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.moves import CANCEL_PATIENCE_S
from fencerow.core.store.suspending import lock_waiters, wake_locked
from fencerow.db.run import Procedure, Rows, Steps, WakeUp, as_int, ask, execute, operation, text_or_none
from fencerow.web.worked.errors import AttemptOver, AttemptUnknown

ACTOR = "its endpoint"

Outcome = Literal["succeeded", "failed"]


class Ticket(NamedTuple):
    """Which attempt, and the digest of its token."""

    id: str
    attempt: int
    digest: str


class FailedAnswer(msgspec.Struct, frozen=True):
    """How an endpoint fails an attempt. `retry`: whether the job's rule may try again; None: it decides by itself."""

    message: str = ""
    retry: bool | None = None
    retry_after_s: float | None = None


@operation(patience_s=CANCEL_PATIENCE_S)
def answer(ticket: Ticket, outcome: Outcome, text: str) -> Steps[list[Requeued]]:
    """Keep the answer, and wake the job if it is suspended; returns it then.

    Raises:
        AttemptUnknown: it is not the token of this attempt. AttemptOver: another answer, the end of the attempt or a
            cancel came before. Nothing is changed. Busy: a transaction of somebody's locks the job.
    """
    yield from _lock(ticket)
    kept = yield from execute("answer_worked", **ticket._asdict(), outcome=outcome, answer=text)
    yield from _check(ticket, kept)
    return (yield from wake_locked([ticket.id], actor=ACTOR, anyway=False))


@operation(alone=True, repeatable=True, writes="")
def name_of(ticket: Ticket) -> Steps[str | None]:
    """The name of the job whose attempt this is; None: it has ended.

    Raises:
        AttemptUnknown: it is not the token of this attempt.
    """
    return text_or_none((yield from _found(ticket))[0][0])


@operation(patience_s=CANCEL_PATIENCE_S)
def beat(ticket: Ticket) -> Steps[int]:
    """The endpoint is at work, and may be silent for as long again; returns until when it may answer, in microseconds.

    Raises:
        AttemptUnknown, AttemptOver, Busy: as `answer`.
    """
    yield from _lock(ticket)
    kept = yield from execute("beat_worked", **ticket._asdict())
    yield from _check(ticket, kept)
    return as_int(kept[0][0])


@operation(patience_s=CANCEL_PATIENCE_S)
def progress(ticket: Ticket, *, percent: float, note: str | None) -> Steps[None]:
    """Say how far the attempt is.

    Raises:
        AttemptUnknown, AttemptOver, Busy: as `answer`.
    """
    yield from _lock(ticket)
    kept = yield from execute("progress_worked", **ticket._asdict(), percent=percent, note=note)
    yield from _check(ticket, kept)


def answering(ticket: Ticket, outcome: Outcome, text: str) -> Procedure[None]:
    """Answer, and wake whoever serves the job."""
    woken = yield from ask(answer(ticket, outcome, text))
    yield WakeUp(hints_of_queued(woken))


def _found(ticket: Ticket) -> Steps[Rows]:
    rows = yield from execute("find_worked", **ticket._asdict())
    if not rows:
        raise AttemptUnknown(
            "the token is not that of this attempt",
            "it was cut or altered, or its job is gone",
            "send the token that came with the request of this attempt",
        )
    return rows


def _lock(ticket: Ticket) -> Steps[None]:
    yield from _found(ticket)
    yield from lock_waiters([ticket.id])


def _check(ticket: Ticket, kept: Rows) -> Steps[None]:
    if kept:
        return
    rows = yield from execute("worked_standing", id=ticket.id, attempt=ticket.attempt)
    reason = _reason(ticket, rows)
    raise AttemptOver(
        f"attempt {ticket.attempt} of job {ticket.id} takes nothing any more: {SAYS[reason]}",
        "one answer counts, and only while the attempt is the job's",
        "stop working on it; nothing was changed",
        reason=reason,
    )


SAYS = {
    "answered": "it was answered",
    "cancelled": "its job was cancelled",
    "ended": "its job has ended",
    "overdue": "its time is over",
    "superseded": "it was taken back, or a newer attempt runs",
}


def _reason(ticket: Ticket, rows: Rows) -> str:
    if not rows:
        return "ended"
    outcome, is_overdue, state, attempt, cancel_requested = rows[0]
    if cancel_requested or state == "cancelled":
        return "cancelled"
    if outcome is not None:
        return "answered"
    if state in (None, "succeeded", "failed"):
        return "ended"
    return "overdue" if is_overdue and as_int(attempt) == ticket.attempt else "superseded"
