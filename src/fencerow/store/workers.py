"""Worker registrations: one row, one lease, for all the jobs a worker process holds."""

from __future__ import annotations

import msgspec

from fencerow.db.statement import Steps, execute, first_column, operation, text_or_none, whole
from fencerow.model.job import WorkerRecord

_record = msgspec.json.Decoder(WorkerRecord)


class Holding(msgspec.Struct, frozen=True):
    """A job that the database says a worker runs, and whether its cancel was asked and by whom."""

    id: str
    attempt: int
    cancel_requested: bool
    cancel_requested_by: str | None


@operation(alone=True, writes="workers")
def register(*, holder: str, name: str, host: str, pid: int, info: str, lease_s: float) -> Steps[bool]:
    """Make the row of a worker under a fresh id; false when the id was used before (take another)."""
    rows = yield from execute(
        "register", holder=holder, name=name, host=host, pid=pid, info=info, lease_s=lease_s
    )
    return bool(rows)


@operation(alone=True, repeatable=True, writes="workers")
def renew(*, holder: str) -> Steps[int | None]:
    """Extend the lease; returns the database's instant of it in microseconds.

    None means that the worker was declared dead and holds nothing any more.
    """
    rows = yield from execute("renew", holder=holder)
    return whole(rows[0][0]) if rows else None


@operation(alone=True, repeatable=True, writes="workers")
def retire(*, holder: str) -> Steps[bool]:
    """End the registration after handing back; false when it had ended already."""
    return bool((yield from execute("retire", holder=holder)))


@operation(alone=True, repeatable=True, writes="")
def last_renewal(*, holder: str) -> Steps[int | None]:
    """The database's instant of the last renewal it has, in microseconds; None when it has no such worker."""
    rows = yield from execute("last_renewal", holder=holder)
    return whole(rows[0][0]) if rows else None


@operation(alone=True, repeatable=True, writes="")
def server_identity() -> Steps[str | None]:
    """Which server this is, and its timeline, which a promotion changes; None where there is no such thing."""
    rows = yield from execute("server_identity")
    return text_or_none(rows[0][0]) if rows else None


@operation(alone=True, repeatable=True, writes="workers")
def describe_worker(*, holder: str, info: str) -> Steps[bool]:
    """Replace what a worker's row tells operators; false when the registration has ended."""
    return bool((yield from execute("describe_worker", holder=holder, info=info)))


@operation(alone=True, repeatable=True, writes="")
def holdings(*, holder: str) -> Steps[list[Holding]]:
    """What the database says this worker runs."""
    rows = yield from execute("holdings", holder=holder)
    return [Holding(str(row[0]), whole(row[1]), bool(row[2]), text_or_none(row[3])) for row in rows]


@operation(alone=True, repeatable=True, writes="workers")
def list_workers(*, state: str | None = None, limit: int = 100) -> Steps[list[WorkerRecord]]:
    """Worker registrations, the newest first."""
    rows = yield from execute("list_workers", state=state, limit=limit)
    return [_record.decode(str(row[0])) for row in rows]


@operation(alone=True, repeatable=True, writes="workers")
def forget_workers(*, age_s: float) -> Steps[list[str]]:
    """Drop rows of workers that ended longer ago than this and hold nothing."""
    return first_column((yield from execute("forget_workers", age_s=age_s)))
