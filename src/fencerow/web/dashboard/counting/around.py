"""Events that belong to a job: its end, and what carries its trace or correlation id."""

from __future__ import annotations

import msgspec

from fencerow.db.run import Steps, as_int, execute, operation, text_or_none

LOOK = 10_000  # of the log, the newest: it has no index by job


class EventAround(msgspec.Struct, frozen=True):
    """An event, without its data."""

    id: int
    topic: str
    key: str | None
    published_at_us: int


@operation(alone=True, repeatable=True, writes="")
def events_around(
    job_id: str, *, correlation: str | None, trace: str | None, limit: int
) -> Steps[list[EventAround]]:
    """The newest events that belong to this job, of the newest `LOOK` that there are."""
    rows = yield from execute(
        "events_around", job=job_id, correlation=correlation, trace=trace, look=LOOK, limit=limit
    )
    return [EventAround(as_int(row[0]), str(row[1]), text_or_none(row[2]), as_int(row[3])) for row in rows]
