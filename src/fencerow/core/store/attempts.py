"""How attempts end: in groups, each under its fence; their ends are told to who waits.

Every verb that ends attempts returns the ids that it moved. An id that is missing was locked by a stranger, asked to
be cancelled, or lost: `read_fences` tells which, and the caller repeats or gives up that one alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fencerow.core.model.job import EndOfJob, Fence
from fencerow.core.model.lane import ANYBODYS
from fencerow.core.model.state import FINAL, State
from fencerow.db.run import (
    Param,
    Row,
    Rows,
    Statement,
    Steps,
    as_int,
    execute,
    first_column,
    operation,
    text_or_none,
)

QUEUED = msgspec.json.Decoder(list[tuple[str, str, int, int, str]])
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
    """A job that is queued again, in this `lane`: what a wake-up has to say. `waits`: it waits for its turn again
    instead."""

    id: str
    queue: str
    priority: int
    run_at_us: int
    waits: bool = False
    lane: str = ANYBODYS


class MovedJob(msgspec.Struct, frozen=True):
    """A job that is finished now, whether somebody waits for it, and whether it had turns that are free now."""

    id: str
    awaited: bool
    had_turns: bool = False


class MovedAndMade(msgspec.Struct, frozen=True):
    """The jobs that are finished now, and those that were made or queued with them: what a wake-up has to say."""

    moved: list[MovedJob]
    made: list[Requeued]


class FirstEnds(msgspec.Struct, frozen=True):
    """The ids of the jobs that are finished now, and of those of them that somebody waits for; whether one had turns
    that are free now; and the jobs that were queued with them."""

    ids: list[str]
    awaited: list[str]
    had_turns: bool
    made: list[Requeued]


@operation(alone=True, prepared=True)
def succeed(outcomes: Sequence[Success], *, holder: str) -> Steps[list[MovedJob]]:
    """Store results and move the jobs to the finished ones. Repeating it moves nothing more.

    Ephemeral jobs leave their ids alone; those that are awaited are kept for `AWAITED_S`.
    """
    return moved_rows((yield Statement("succeed", _given(outcomes, holder, alone=False))))


@operation(alone=True, prepared=True)
def succeed_alone(outcomes: Sequence[Success], *, holder: str) -> Steps[MovedAndMade]:
    """`succeed` in a transaction of its own: wings may pass on what let these jobs run, and queue others with that.

    On PostgreSQL it locks those that it queues. A lost answer leaves them queued; a sweep of their lanes finds them.
    """
    rows = yield Statement("succeed", _given(outcomes, holder, alone=True))
    return MovedAndMade(moved_rows(rows), [job for row in rows for job in _queued(row)])


@operation(alone=True, prepared=True)
def succeed_first(outcomes: Sequence[Success], *, holder: str) -> Steps[FirstEnds]:
    """`succeed_alone` for jobs of which none is known to have ended before, which is cheaper on PostgreSQL.

    If one has, though it is live, a primary key refuses all of it (an integrity error of the driver's), and nothing is
    written: ask `succeed_alone` then.
    """
    (row,) = yield Statement("succeed_first", _given(outcomes, holder, alone=True))
    return FirstEnds(_listed(row[0]), _listed(row[1]), bool(row[2]), _queued(row))


@operation(repeatable=False)
def fail(outcomes: Sequence[Failure], *, holder: str) -> Steps[list[MovedJob]]:
    """End the jobs as failed."""
    return (yield from _then_archive("fail", outcomes, holder))


@operation(repeatable=False)
def stop(outcomes: Sequence[Stop], *, holder: str) -> Steps[list[MovedJob]]:
    """End the jobs as cancelled, those of them of which a cancel was asked."""
    return (yield from _then_archive("stop", outcomes, holder))


@operation(alone=True)
def requeue(outcomes: Sequence[Requeue], *, holder: str) -> Steps[list[Requeued]]:
    """Put the jobs back into their queues, but for those of which a cancel was asked: `stop` those."""
    rows = yield from execute("requeue", outcomes=text_of(outcomes), holder=holder)
    return requeued_rows(rows)


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


@operation(alone=True, repeatable=True, writes="")
def outcomes(ids: Sequence[str]) -> Steps[dict[str, EndOfJob]]:
    """How those of the jobs ended that have."""
    rows = yield Statement("outcomes", {"ids": list(ids)})
    return {
        str(row[0]): EndOfJob(str(row[0]), State(str(row[1])), text_or_none(row[2]), text_or_none(row[3]))
        for row in rows
    }


@operation(alone=True, repeatable=True)
def mark_awaited(ids: Sequence[str]) -> Steps[list[str]]:
    """Note that somebody waits for these jobs, so that their end is announced; returns those newly noted."""
    return [str(row[0]) for row in (yield Statement("mark_awaited", {"ids": list(ids)}))]


@operation(alone=True, repeatable=True, writes="")
def existing(ids: Sequence[str]) -> Steps[set[str]]:
    """Which of these jobs exist, live or finished."""
    return set(first_column((yield Statement("existing", {"ids": list(ids)}))))


def archive(ids: Iterable[str]) -> Steps[list[MovedJob]]:
    """Move what this transaction has brought to a final state. Part of other operations."""
    wanted = list(ids)
    if not wanted:
        return []
    return moved_rows((yield from execute("archive", ids=wanted)))


def _given(outcomes: Sequence[Success], holder: str, *, alone: bool) -> dict[str, Param]:
    return {"outcomes": text_of(outcomes), "holder": holder, "awaited_s": AWAITED_S, "alone": int(alone)}


def _listed(ids: object) -> list[str]:
    return str(ids).split(",") if ids is not None else []


def _queued(row: Row) -> list[Requeued]:
    """Of a JSON array of arrays in the fourth column, if there is one: id, queue, priority, due instant, lane."""
    if len(row) < 4 or row[3] is None:
        return []
    each: list[tuple[str, str, int, int, str]] = QUEUED.decode(str(row[3]))
    return [
        Requeued(job_id, queue, priority, at_us, lane=lane) for job_id, queue, priority, at_us, lane in each
    ]


def moved_rows(rows: Rows) -> list[MovedJob]:
    return [MovedJob(str(row[0]), bool(row[1]), bool(row[2])) for row in rows]


def requeued_rows(rows: Rows) -> list[Requeued]:
    return [
        Requeued(str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3]), bool(row[4]), str(row[5]))
        for row in rows
    ]


def _then_archive(name: str, outcomes: Sequence[msgspec.Struct], holder: str) -> Steps[list[MovedJob]]:
    rows = yield from execute(name, outcomes=text_of(outcomes), holder=holder)
    return (yield from archive(first_column(rows)))


def text_of(outcomes: Sequence[msgspec.Struct]) -> str:
    """The outcomes as the statements read them: a JSON array."""
    return msgspec.json.encode(outcomes).decode()
