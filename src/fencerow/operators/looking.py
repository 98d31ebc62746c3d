"""Looking at jobs, live and finished together: pages of those that match, counts, timelines, logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from fencerow.core.model.job import At, Happening, JobRecord
from fencerow.core.model.state import FINAL, State
from fencerow.core.store.decoding import read_or, record_of
from fencerow.db.run import Steps, as_int, execute, operation, text_or_none

# What a list does not read: payloads, which may be large.
UNLISTED = ("args", "options", "metadata", "headers", "result")


class LogLine(msgspec.Struct, frozen=True):
    """A line kept with the job by `job.log`."""

    attempt: int
    at_us: int
    level: str
    message: str

    at = At("at_us")


def listed(job: JobRecord) -> dict[str, Any]:
    """A job of a list by its fields, without those that a list does not read."""
    return {name: getattr(job, name) for name in job.__struct_fields__ if name not in UNLISTED}


class Count(msgspec.Struct, frozen=True):
    """How many live jobs of one queue, name and state there are, and when the first is due."""

    queue: str
    name: str
    state: State
    jobs: int
    first_us: int
    now_us: int


class SearchPage(msgspec.Struct, frozen=True):
    """What a search came upon; `looked_to` is the id below which to go on, if it ended before the page was full."""

    jobs: list[JobRecord]
    looked_to: str | None


@operation(alone=True, repeatable=True, writes="")
def list_jobs(
    *,
    queue: str | None = None,
    name: str | None = None,
    states: Sequence[State] | None = None,
    scope: str | None = None,
    key: str | None = None,
    before_id: str | None = None,
    from_id: str | None = None,
    limit: int = 50,
) -> Steps[list[JobRecord]]:
    """A page of jobs that match, the newest id first; pass the last id of a page as `before_id` for the next.

    `from_id`: none below this id is looked at.
    """
    rows = yield from execute(
        "list",
        queue=queue,
        name=name,
        states=None if states is None else [state.value for state in states],
        scope=scope,
        key=key,
        before_id=before_id,
        from_id=from_id,
        limit=limit,
        live=states is None or not FINAL.issuperset(states),
        finished=states is None or not FINAL.isdisjoint(states),
    )
    return _newest_first(record_of(str(row[0])) for row in rows)


@operation(alone=True, repeatable=True, writes="")
def search(
    *,
    tags: str | None = None,
    metadata: str | None = None,
    queue: str | None = None,
    name: str | None = None,
    states: Sequence[State] | None = None,
    scope: str | None = None,
    key: str | None = None,
    before_id: str | None = None,
    from_id: str | None = None,
    limit: int = 50,
) -> Steps[SearchPage]:
    """A page of jobs that carry all these tags (a JSON array) and metadata (a JSON object of plain values).

    On SQLite a look ends after 10,000 jobs that carry any: `looked_to` is then where to go on.
    """
    rows = yield from execute(
        "search",
        tags=tags,
        metadata=metadata,
        queue=queue,
        name=name,
        states=None if states is None else [state.value for state in states],
        scope=scope,
        key=key,
        before_id=before_id,
        from_id=from_id,
        limit=limit,
    )
    jobs = _newest_first(record_of(str(row[0])) for row in rows if row[0] is not None)
    looked_to = [str(row[1]) for row in rows if row[1] is not None]
    return SearchPage(jobs, looked_to[0] if looked_to and len(jobs) < limit else None)


def _newest_first(jobs: Iterable[JobRecord]) -> list[JobRecord]:
    # The documents are looked up by the ids of the page, in whatever order that is quickest.
    return sorted(jobs, key=lambda job: job.id, reverse=True)


@operation(alone=True, repeatable=True, writes="")
def events(job_id: str, *, limit: int = 1000) -> Steps[list[Happening]]:
    """What was noted about a job beyond its columns, in order."""
    rows = yield from execute("events", id=job_id, limit=limit)
    return [
        Happening(
            at_us=as_int(row[1]),
            kind=str(row[2]),
            attempt=as_int(row[0]),
            actor=text_or_none(row[3]),
            detail=None if row[4] is None else read_or(str(row[4]), Any, str(row[4])),
        )
        for row in rows
    ]


@operation(alone=True, repeatable=True, writes="")
def logs(job_id: str, *, limit: int = 1000) -> Steps[list[LogLine]]:
    """The lines kept with a job, in order."""
    rows = yield from execute("logs", id=job_id, limit=limit)
    return [LogLine(as_int(row[0]), as_int(row[1]), str(row[2]), str(row[3])) for row in rows]


@operation(alone=True, repeatable=True, writes="")
def counts() -> Steps[list[Count]]:
    """Live jobs by queue, name and state."""
    rows = yield from execute("counts")
    return [
        Count(str(row[0]), str(row[1]), State(str(row[2])), as_int(row[3]), as_int(row[4]), as_int(row[5]))
        for row in rows
    ]


@operation(alone=True, repeatable=True, writes="")
def finished_counts() -> Steps[list[tuple[str, State, int]]]:
    """Finished jobs that are still kept: queue, state, number."""
    rows = yield from execute("finished_counts")
    return [(str(row[0]), State(str(row[1])), as_int(row[2])) for row in rows]


@operation(alone=True, repeatable=True, writes="")
def ahead(job_id: str) -> Steps[int]:
    """How many queued jobs are claimed before this one, counted up to 1,000."""
    rows = yield from execute("ahead", id=job_id)
    return as_int(rows[0][0])
