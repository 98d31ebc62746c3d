"""What a worker claims: from which lanes, and how it reads the jobs that it got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fencerow.core.model.job import Claimed, QueueLane
from fencerow.core.model.lane import ANYBODYS, SUSPECT, open_to
from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.decoding import salvaged_claims
from fencerow.db.due import OWN, Due
from fencerow.db.run import Param, Rows, Statement, Steps, as_int, execute, operation

CLAIMS = msgspec.json.Decoder(list[Claimed])
NIL = "00000000-0000-0000-0000-000000000000"
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


def claim_given(
    queue: str, given: Sequence[str], *, holder: str, names: Sequence[str], margin_s: float
) -> Steps[list[Claimed]]:
    """`claim` of these jobs of a queue, which wait at a place, instead of those of its lanes.

    For the transaction that has locked what decides who may go there, and these jobs, and has found that they may.
    Those that do not stand in the lane of anybody, whose names are none of these, or that have expired are left
    waiting, and so are all of them where the queue is paused or has a limit, or where the worker is not alive.
    """
    params = _claim_params(queue, (), holder, names, len(given), margin_s, OWN, bounded=False, given=given)
    return _at_most(len(given), (yield Statement("claim", params)))


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
    given: Sequence[str] = (),
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
        "given": list(given),
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
