"""Reading jobs, live and finished together."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.model.job import JobRecord
from fencerow.core.store.decoding import record_of
from fencerow.db.run import Steps, as_int, execute, operation


class KeyOwner(msgspec.Struct, frozen=True):
    """The job that an idempotency key belongs to."""

    job_id: str
    fingerprint: str
    expired: bool


class Releases(msgspec.Struct, frozen=True):
    """How often a job was given back, and how long ago the first time was."""

    count: int
    since_s: float


@operation(alone=True, repeatable=True, writes="")
def read(ids: Sequence[str]) -> Steps[dict[str, JobRecord]]:
    """Jobs by id; one that is nowhere is not in the answer."""
    rows = yield from execute("read", ids=list(ids))
    records = (record_of(str(row[0])) for row in rows)
    return {record.id: record for record in records}


@operation(alone=True, repeatable=True, writes="")
def key_owner(scope: str, key: str) -> Steps[KeyOwner | None]:
    """Who owns an idempotency key, also when that job is gone."""
    rows = yield from execute("key_owner", scope=scope, key=key)
    return KeyOwner(str(rows[0][0]), str(rows[0][1]), bool(rows[0][2])) if rows else None


@operation(alone=True, repeatable=True, writes="")
def releases(job_id: str, *, reason: str) -> Steps[Releases]:
    """How often, and for how long, a job has been given back for a reason that begins so, with no attempt between."""
    count, first_us, now_us = (yield from execute("releases", id=job_id, reason=reason))[0]
    return Releases(as_int(count), 0.0 if first_us is None else (as_int(now_us) - as_int(first_us)) / 1e6)


@operation(alone=True, repeatable=True, writes="")
def clock() -> Steps[int]:
    """The database's now, in microseconds since 1970."""
    rows = yield from execute("clock")
    return as_int(rows[0][0])
