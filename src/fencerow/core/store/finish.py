"""Ending attempts, in groups, each under its fence.

Every verb returns the ids that it moved. An id that is missing was locked by a stranger, asked to be
cancelled, or lost: `read_fences` tells which, and the caller repeats or gives up that one alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fencerow.core.db.run import (
    Rows,
    Statement,
    Steps,
    as_int,
    execute,
    first_column,
    operation,
    text_or_none,
)
from fencerow.core.model.job import Fence
from fencerow.core.model.state import FINAL, State

# How long the result of an ephemeral job is kept for those who wait for it.
AWAITED_S = 300.0


class Success(msgspec.Struct, frozen=True, gc=False):
    """A finished attempt: `result` is the JSON text to store."""

    id: str
    attempt: int
    result: str


class Failure(msgspec.Struct, frozen=True):
    """An attempt after which the job shall not run again: `error` is JSON text."""

    id: str
    attempt: int
    error: str


class Requeue(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt whose job goes back to its queue.

    `kind` is retried, snoozed or released; without `delay_s` the job keeps its place. `failures` and
    `snoozes` are what this attempt spends of the budgets; `detail` is JSON text for the timeline.
    """

    id: str
    attempt: int
    kind: str
    delay_s: float | None = None
    failures: int = 0
    snoozes: int = 0
    detail: str | None = None


class Stop(msgspec.Struct, frozen=True):
    """An attempt that ended because a cancel was asked: `detail` is JSON text or None."""

    id: str
    attempt: int
    detail: str | None = None


class Requeued(msgspec.Struct, frozen=True):
    """A job that is queued again: what a wake-up has to say."""

    id: str
    queue: str
    priority: int
    run_at_us: int


class Moved(msgspec.Struct, frozen=True):
    """A job that is finished now, and whether somebody waits for it."""

    id: str
    awaited: bool


@operation(alone=True, prepared=True)
def succeed(outcomes: Sequence[Success], *, holder: str) -> Steps[list[Moved]]:
    """Store results and move the jobs to the finished ones. Repeating it moves nothing more.

    Ephemeral jobs leave their ids alone; those that are awaited are kept for `AWAITED_S`.
    """
    document = _document(outcomes)
    params = {"outcomes": document, "holder": holder, "awaited_s": AWAITED_S}
    return moved_rows((yield Statement("succeed", params)))


@operation(repeatable=False)
def fail(outcomes: Sequence[Failure], *, holder: str) -> Steps[list[Moved]]:
    """End the jobs as failed."""
    return (yield from _then_archive("fail", outcomes, holder))


@operation(repeatable=False)
def stop(outcomes: Sequence[Stop], *, holder: str) -> Steps[list[Moved]]:
    """End the jobs as cancelled, those of them of which a cancel was asked."""
    return (yield from _then_archive("stop", outcomes, holder))


@operation(alone=True)
def requeue(outcomes: Sequence[Requeue], *, holder: str) -> Steps[list[Requeued]]:
    """Put the jobs back into their queues, but for those of which a cancel was asked: `stop` those."""
    rows = yield from execute("requeue", outcomes=_document(outcomes), holder=holder)
    return requeued_rows(rows)


@operation(alone=True)
def park(outcomes: Sequence[Failure], *, holder: str) -> Steps[list[Moved]]:
    """End the jobs as failed where they are, for the database refuses to move them; see `move_parked`."""
    return moved_rows((yield from execute("park", outcomes=_document(outcomes), holder=holder)))


@operation(alone=True, repeatable=True, writes="")
def parked(*, limit: int) -> Steps[list[str]]:
    """Jobs that have ended and lie among the live ones still, the oldest first, at most `limit`."""
    return first_column((yield from execute("parked", limit=limit)))


@operation()
def move_parked(job_id: str) -> Steps[list[Moved]]:
    """Move a job that was parked to the finished ones, if nobody has. Refused again, it stays where it is."""
    return (yield from archive([job_id]))


@operation(alone=True, repeatable=True, writes="")
def read_fences(ids: Sequence[str]) -> Steps[dict[str, Fence]]:
    """State, holder and attempt of each job, live or finished; a job that is nowhere is not in the answer.

    Of a job that is both, the live one is told: its fence is what may still be written under.
    """
    fences: dict[str, Fence] = {}
    for row in (yield from execute("read_fences", ids=list(ids))):
        fence = Fence(
            str(row[0]), State(str(row[1])), text_or_none(row[2]), as_int(row[3]), bool(row[4]), bool(row[5])
        )
        if fence.id not in fences or fences[fence.id].state in FINAL:
            fences[fence.id] = fence
    return fences


def archive(ids: Iterable[str]) -> Steps[list[Moved]]:
    """Move what this transaction has brought to a final state. Part of other operations."""
    wanted = list(ids)
    if not wanted:
        return []
    return moved_rows((yield from execute("archive", ids=wanted)))


def moved_rows(rows: Rows) -> list[Moved]:
    return [Moved(str(row[0]), bool(row[1])) for row in rows]


def requeued_rows(rows: Rows) -> list[Requeued]:
    return [Requeued(str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3])) for row in rows]


def _then_archive(name: str, outcomes: Sequence[msgspec.Struct], holder: str) -> Steps[list[Moved]]:
    rows = yield from execute(name, outcomes=_document(outcomes), holder=holder)
    return (yield from archive(first_column(rows)))


def _document(outcomes: Sequence[msgspec.Struct]) -> str:
    return msgspec.json.encode(outcomes).decode()
