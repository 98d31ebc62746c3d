"""What happens to attempts: claimed for a worker; ended in groups, each under its fence; their ends told to who waits.

Every verb that ends attempts returns the ids that it moved. An id that is missing was locked by a stranger, asked to
be cancelled, or lost: `read_fences` tells which, and the caller repeats or gives up that one alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from fencerow.core.model.job import Claimed, EndOfJob, Fence, QueueLane
from fencerow.core.model.lane import ANYBODYS, SUSPECT, open_to
from fencerow.core.model.state import FINAL, State
from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.decoding import salvaged_claims
from fencerow.db.due import OWN, Due
from fencerow.db.run import (
    Param,
    Rows,
    Statement,
    Steps,
    as_int,
    execute,
    first_column,
    operation,
    text_or_none,
)

CLAIMS = msgspec.json.Decoder(list[Claimed])
QUEUED = msgspec.json.Decoder(list[tuple[str, str, int, int, str]])
NIL = "00000000-0000-0000-0000-000000000000"
# How long the result of an ephemeral job is kept for those who wait for it.
AWAITED_S = 300.0
LANES_IN_TURN_MAX = 1000  # that a look at the lanes passes to find one that has something due


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the next claim of a lane starts: after this job. Only a hint; a sweep starts from the beginning.

    `lane`: the name of the lane in its priority, see `core/model/lane.py`. `count`: how many jobs the claim takes from
    it at most; None: as many as it may take in all.
    """

    priority: int
    run_at_us: int = 0
    id: str = NIL
    lane: str = ANYBODYS
    count: int | None = None


SUSPECTS = (Mark(0, lane=SUSPECT),)


@operation(alone=True, prepared=True, walks=True)
def claim(
    queue: str,
    marks: Sequence[Mark],
    *,
    holder: str,
    names: Sequence[str],
    limit: int,
    margin_s: float,
    due: Due = OWN,
    bounded: bool = False,
) -> Steps[list[Claimed]]:
    """Take up to `limit` due jobs of these names, lane by lane in the order of `marks`, for a living worker.

    The attempt of each is raised. `margin_s` is added to a job's timeout for the deadline that people are shown.
    `due` says what is due beyond the database's now, after its clock went back. A lost reply leaves jobs running
    that the worker does not know: see `holdings`. Locked rows are skipped, so it never waits. Of a queue with a
    limit it takes nothing, unless it is `bounded`: the transaction has locked the limit and asks for no more than it
    lets through. A job that has left the lane in which it was found (its wait for a label is over) is left.
    """
    rows = yield Statement(
        "claim", _claim_params(queue, marks, holder, names, limit, margin_s, due, bounded=bounded)
    )
    return _at_most(limit, rows)


@operation()
def claim_suspect(
    queue: str,
    marks: Sequence[Mark] = SUSPECTS,
    *,
    holder: str,
    names: Sequence[str],
    margin_s: float,
    at_most: int = 1,
    limit: int | None = None,
    due: Due = OWN,
    bounded: bool = False,
) -> Steps[list[Claimed]]:
    """`claim` from lanes of suspects (jobs whose last worker died) until this worker runs `at_most` of them, at most
    `limit` now.

    `bounded` as in `claim`: `limit` is then what the limit lets through. Two of one worker take turns, so that the
    second counts what the first took: the server may still run the first when its connection has broken. The second
    takes nothing while the first is under way.
    """
    got = yield from execute("lock_suspects", holder=holder)
    if not got[0][0]:
        return []
    ((running,),) = yield from execute("count_suspects", holder=holder)
    room = at_most - as_int(running)
    room = room if limit is None else min(room, limit)
    if room <= 0:
        return []
    params = _claim_params(queue, marks, holder, names, room, margin_s, due, bounded=bounded)
    return _at_most(room, (yield from execute("claim", **params)))


def _claim_params(
    queue: str,
    marks: Sequence[Mark],
    holder: str,
    names: Sequence[str],
    limit: int,
    margin_s: float,
    due: Due,
    *,
    bounded: bool,
) -> dict[str, Param]:
    lanes = [
        (mark.priority, mark.lane, mark.run_at_us, mark.id, limit if mark.count is None else mark.count)
        for mark in marks
    ]
    return {
        "queue": queue,
        "lanes": msgspec.json.encode(lanes).decode(),
        "holder": holder,
        "names": list(names),
        "limit": limit,
        "margin_s": margin_s,
        "due_us": due.until_us,
        "since_us": due.since_us,
        "bounded": int(bounded),
    }


def _at_most(limit: int, rows: Rows) -> list[Claimed]:
    claimed = decoded(rows)
    assert len(claimed) <= limit, f"claimed {len(claimed)} jobs, asked for {limit}"
    return claimed


@operation(alone=True, repeatable=True, writes="", prepared=True, walks=True)
def lanes(queue: str, labels: Sequence[str] = ()) -> Steps[tuple[list[QueueLane], int]]:
    """The lanes of a queue that hold jobs for a worker with these labels, the highest priority first, and the
    database's now in microseconds (0 when there is no lane). The lanes in turn of a priority are one."""
    rows = yield Statement(
        "lanes", {"queue": queue, "names": open_to(labels), "turns_max": LANES_IN_TURN_MAX}
    )
    found = [QueueLane(as_int(row[0]), as_int(row[2]), str(row[1]), bool(row[4])) for row in rows]
    found.sort(key=lambda lane: -lane.priority)
    return found, max((as_int(row[3]) for row in rows), default=0)


@operation(alone=True, repeatable=True, writes="")
def any_due(queues: Sequence[str], names: Sequence[str], labels: Sequence[str] = ()) -> Steps[bool]:
    """Whether a job is due there that a worker of these names and labels could claim, whoever locks its row now."""
    rows = yield from execute("any_due", queues=list(queues), names=list(names), open=open_to(labels))
    return bool(rows[0][0])


@operation(alone=True, repeatable=True, writes="")
def fetch_args(job_id: str, *, holder: str, attempt: int) -> Steps[str | None]:
    """The stored arguments of a running attempt, or None when it no longer holds the job."""
    rows = yield from execute("fetch_args", id=job_id, holder=holder, attempt=attempt)
    return str(rows[0][0]) if rows else None


def decoded(rows: Rows) -> list[Claimed]:
    """Claims come as one JSON array (PostgreSQL) or one JSON document a row (SQLite), by lane order either way."""
    found: list[Claimed] = []
    for (document,) in rows:
        if document is None:
            continue
        text = str(document)
        text = text if text.startswith("[[") else f"[{text}]"
        try:
            found += CLAIMS.decode(text)
        except UNREADABLE:
            found += salvaged_claims(text)
    if len(rows) > 1:
        found.sort(key=lambda job: (-job.priority, job.run_at_us, job.id))
    return found


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


@operation(alone=True, prepared=True)
def succeed(outcomes: Sequence[Success], *, holder: str) -> Steps[list[MovedJob]]:
    """Store results and move the jobs to the finished ones. Repeating it moves nothing more.

    Ephemeral jobs leave their ids alone; those that are awaited are kept for `AWAITED_S`.
    """
    return moved_rows((yield _succeeding(outcomes, holder, alone=False)))


@operation(alone=True, prepared=True)
def succeed_alone(outcomes: Sequence[Success], *, holder: str) -> Steps[MovedAndMade]:
    """`succeed` in a transaction of its own: wings may pass on what let these jobs run, and queue others with that.

    On PostgreSQL it locks those that it queues. A lost answer leaves them queued; a sweep of their lanes finds them.
    """
    rows = yield _succeeding(outcomes, holder, alone=True)
    queued = [_queued(row[3]) for row in rows if len(row) > 3 and row[3] is not None]
    return MovedAndMade(moved_rows(rows), [job for some in queued for job in some])


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


def _succeeding(outcomes: Sequence[Success], holder: str, *, alone: bool) -> Statement:
    params = {"outcomes": text_of(outcomes), "holder": holder, "awaited_s": AWAITED_S, "alone": int(alone)}
    return Statement("succeed", params)


def _queued(document: object) -> list[Requeued]:
    """Of a JSON array of arrays: id, queue, priority, due instant, lane."""
    each: list[tuple[str, str, int, int, str]] = QUEUED.decode(str(document))
    return [
        Requeued(job_id, queue, priority, at_us, lane=lane) for job_id, queue, priority, at_us, lane in each
    ]


def moved_rows(rows: Rows) -> list[MovedJob]:
    return [MovedJob(str(row[0]), bool(row[1]), bool(row[2])) for row in rows]


def requeued_rows(rows: Rows) -> list[Requeued]:
    return [
        Requeued(
            str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3]), bool(row[4]),
            str(row[5]) if len(row) > 5 else ANYBODYS,
        )
        for row in rows
    ]  # fmt: skip


def _then_archive(name: str, outcomes: Sequence[msgspec.Struct], holder: str) -> Steps[list[MovedJob]]:
    rows = yield from execute(name, outcomes=text_of(outcomes), holder=holder)
    return (yield from archive(first_column(rows)))


def text_of(outcomes: Sequence[msgspec.Struct]) -> str:
    """The outcomes as the statements read them: a JSON array."""
    return msgspec.json.encode(outcomes).decode()
