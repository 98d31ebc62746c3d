"""Claiming jobs for a worker, and finding the lanes that hold any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fencerow.core.db.run import Rows, Statement, Steps, as_int, execute, operation
from fencerow.core.model.due import OWN, Due
from fencerow.core.model.job import Claimed, Lane
from fencerow.core.model.value import UNREADABLE
from fencerow.core.store.decoding import salvaged_claims

CLAIMS = msgspec.json.Decoder(list[Claimed])
NIL = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the next claim of a lane starts: after this job. Only a hint; a sweep starts from the beginning."""

    priority: int
    run_at_us: int = 0
    id: str = NIL


@operation(alone=True, prepared=True)
def claim(
    queue: str,
    marks: Sequence[Mark],
    *,
    holder: str,
    names: Sequence[str],
    limit: int,
    margin_s: float,
    due: Due = OWN,
) -> Steps[list[Claimed]]:
    """Take up to `limit` due jobs of these names, lane by lane in the order of `marks`, for a living worker.

    The attempt of each is raised. `margin_s` is added to a job's timeout for the deadline that people are shown.
    `due` says what is due beyond the database's now, after its clock went back. A lost reply leaves jobs running
    that the worker does not know: see `holdings`. Locked rows are skipped, so it never waits.
    """
    lanes = msgspec.json.encode([(mark.priority, mark.run_at_us, mark.id) for mark in marks]).decode()
    rows = yield Statement(
        "claim",
        {
            "queue": queue,
            "lanes": lanes,
            "holder": holder,
            "names": list(names),
            "limit": limit,
            "margin_s": margin_s,
            "due_us": due.until_us,
            "since_us": due.since_us,
        },
    )
    claimed = decoded(rows)
    assert len(claimed) <= limit, f"claimed {len(claimed)} jobs, asked for {limit}"
    return claimed


@operation()
def claim_suspect(
    queue: str, *, holder: str, names: Sequence[str], margin_s: float, at_most: int = 1, due: Due = OWN
) -> Steps[list[Claimed]]:
    """Take suspect jobs (those whose last worker died) until this worker runs `at_most` of them.

    Two of one worker take turns, so that the second counts what the first took: the server may still run the
    first when its connection has broken. The second takes nothing while the first is under way.
    """
    got = yield from execute("lock_suspects", holder=holder)
    if not got[0][0]:
        return []
    rows = yield from execute(
        "claim_suspect",
        queue=queue,
        holder=holder,
        names=list(names),
        margin_s=margin_s,
        at_most=at_most,
        due_us=due.until_us,
        since_us=due.since_us,
    )
    claimed = decoded(rows)
    assert len(claimed) <= at_most, f"claimed {len(claimed)} suspects, asked for {at_most}"
    return claimed


@operation(alone=True, repeatable=True, writes="", prepared=True)
def lanes(queue: str) -> Steps[tuple[list[Lane], int]]:
    """The lanes of a queue that hold queued jobs, and the database's now in microseconds (0 when there is no lane)."""
    rows = yield from execute("lanes", queue=queue)
    found = [Lane(None if row[0] is None else as_int(row[0]), as_int(row[1])) for row in rows]
    return found, max((as_int(row[2]) for row in rows), default=0)


@operation(alone=True, repeatable=True, writes="")
def any_due(queues: Sequence[str], names: Sequence[str]) -> Steps[bool]:
    """Whether a job is due there that a worker of these names could claim, whoever locks its row just now."""
    return bool((yield from execute("any_due", queues=list(queues), names=list(names)))[0][0])


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
