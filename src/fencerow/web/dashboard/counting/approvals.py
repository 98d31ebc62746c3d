"""What people are asked: a page of what can be answered still, all of one job, and the answer of who is logged in."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.store.moves import CANCEL_PATIENCE_S
from fencerow.db.run import (
    Row,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    first_column,
    operation,
    text_or_none,
)
from fencerow.steps.approvals import Ticket, answer_approval, unknown
from fencerow.steps.signals import Signalled

LOOK = 1_000  # of those that nobody has answered, for a page
OF_JOB_MAX = 100  # as many as a job may ask


@dataclass(frozen=True, slots=True)
class QuestionShown:
    """What a person is asked. No `job_name`: the job has ended. `over`: what became of it; None: it can be answered."""

    id: str
    job_id: str
    job_name: str | None
    job_state: str | None
    signal: str
    asks: str
    made_by: str | None
    made_at_us: int
    expires_at_us: int
    over: str | None = None
    answered_at_us: int | None = None


@dataclass(frozen=True, slots=True)
class QuestionPage:
    """Some of them. `edge`: the place of the last one that was looked at, where there may be more behind it."""

    questions: list[QuestionShown]
    now_us: int
    edge: tuple[int, str] | None = None


@operation(alone=True, repeatable=True, writes="")
def open_approvals(after: tuple[int, str], *, limit: int) -> Steps[QuestionPage]:
    """Those that can be answered, whose time is over first, behind a place: when it is over, and the id."""
    rows = yield from execute("open_approvals", after_us=after[0], after_id=after[1], look=LOOK, limit=limit)
    *found, last = rows
    looked = as_int(last[10])
    edge = (as_int(last[8]), str(last[9])) if looked == LOOK else None
    return QuestionPage([_question(row) for row in found], as_int(last[7]), edge)


@operation(alone=True, repeatable=True, writes="")
def approvals_of_job(job_id: str) -> Steps[QuestionPage]:
    """All that was asked for one job, answered or not, the newest first."""
    rows = yield from execute("approvals_of_job", job=job_id, limit=OF_JOB_MAX)
    *found, last = rows
    return QuestionPage([_question(row) for row in found], as_int(last[7]))


@operation(patience_s=CANCEL_PATIENCE_S)
def answer_by_id(approval_id: str, *, yes: bool, actor: str | None) -> Steps[Signalled]:
    """Answer as who has the address does, by the same guarded statement, once. Locks the job's row.

    Raises:
        ApprovalUnknown: nothing is asked under this id. ApprovalOver: it was answered, has expired, or its job has
            ended; nothing is changed. Busy: a transaction of somebody's locks the job.
    """
    found = first_column((yield from execute("approval_digest", approval_id=approval_id)))
    if not found:
        raise unknown()
    return (yield from answer_approval(Ticket(approval_id, str(found[0])), yes=yes, actor=actor).steps())


def _question(row: Row) -> QuestionShown:
    return QuestionShown(
        str(row[0]),
        str(row[1]),
        text_or_none(row[2]),
        text_or_none(row[3]),
        str(row[4]),
        str(row[5]),
        text_or_none(row[6]),
        as_int(row[7]),
        as_int(row[8]),
        text_or_none(row[9]),
        as_int_or_none(row[10]),
    )
