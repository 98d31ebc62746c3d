"""The documents of the gateway: what it takes, and what it answers. Instants are ISO 8601 in UTC."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fencerow.command.times import exact, iso
from fencerow.core.model.job import Happening, JobRecord
from fencerow.payloads.shown import told_of

JobState = Literal["queued", "waiting", "running", "succeeded", "failed", "cancelled"]
FinalState = Literal["succeeded", "failed", "cancelled"]
SubmitAnswer = Literal["inserted", "existing", "replaced"]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Instant = Annotated[str, Meta(description="ISO 8601, in UTC", extra_json_schema={"format": "date-time"})]


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a caller sends: a field that nobody knows is refused."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway answers."""


class JobDocument(Told, frozen=True):
    """A job as it stands. Arguments are not shown here; `result` is at an address of its own."""

    id: str
    job: str
    queue: str
    state: JobState
    priority: int
    attempt: int
    failures: int
    attempts_max: int
    submitted_at: Instant
    run_at: Instant
    claimed_at: Instant | None = None
    ended_at: Instant | None = None
    expires_at: Instant | None = None
    cancel_requested_at: Instant | None = None
    progress: float | None = None
    progress_note: str | None = None
    key: str | None = None
    scope: str | None = None
    exclusive: str | None = None
    limits: list[str] | None = None
    share: str | None = None
    affinity: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    submitted_by: Annotated[str, Meta(description="the name of the token, or of the program")] | None = None
    headers: (
        Annotated[
            dict[str, str], Meta(description="what goes with the job: `correlation-id`, `traceparent` …")
        ]
        | None
    ) = None
    error: ErrorDocument | None = None


class ErrorDocument(Told, frozen=True):
    """Why a job failed, as its last attempt reported it. Its traceback is for operators, and is not shown here."""

    type: str
    message: str
    code: str | None = None


class Happened(Told, frozen=True):
    """One line of a job's timeline: what happened, when, in which attempt, by whom. `detail` depends on `kind`."""

    at: Instant
    kind: str
    attempt: int
    actor: str | None = None
    detail: Any = None


class Timeline(Told, frozen=True):
    """What happened to a job, in order."""

    id: str
    happened: list[Happened]


class LoggedLine(Told, frozen=True):
    """A line that a handler kept with its job."""

    attempt: int
    at: Instant
    level: str
    message: str


class Lines(Told, frozen=True):
    """The log lines of a job, in order."""

    id: str
    lines: list[LoggedLine]


class Difference(Told, frozen=True):
    """What a column was, and what it is. Of arguments the size is told, not the value."""

    before: Any
    after: Any


class Changed(Told, frozen=True):
    """A job after a change; `changes` is empty if it was so already."""

    id: str
    state: JobState
    queue: str
    priority: int
    run_at: Instant
    changes: dict[str, Difference]


def surely(us: int) -> str:
    """An instant that is there, for programs."""
    return exact(us, "microseconds")


def job_document(job: JobRecord) -> JobDocument:
    """A record of the store as callers see it."""
    return JobDocument(
        id=job.id,
        job=job.name,
        queue=job.queue,
        state=job.state.value,
        priority=job.priority,
        attempt=job.attempt,
        failures=job.failures,
        attempts_max=job.attempts_max,
        submitted_at=surely(job.submitted_at_us),
        run_at=surely(job.run_at_us),
        claimed_at=iso(job.claimed_at_us),
        ended_at=iso(job.ended_at_us),
        expires_at=iso(job.expires_at_us),
        cancel_requested_at=iso(job.cancel_requested_at_us),
        progress=job.progress,
        progress_note=job.progress_note,
        key=job.key,
        scope=job.scope,
        exclusive=job.exclusive,
        limits=job.limits,
        share=job.share,
        affinity=job.affinity,
        tags=job.tags,
        metadata=job.metadata,
        submitted_by=job.submitted_by,
        headers=job.headers,
        error=error_document(job.error),
    )


def happened(event: Happening, *, tracebacks: bool) -> Happened:
    """A line of the store's timeline as callers see it."""
    return Happened(
        at=surely(event.at_us),
        kind=event.kind,
        attempt=event.attempt,
        actor=event.actor,
        detail=event.detail if tracebacks else _without_tracebacks(event.detail),
    )


def _without_tracebacks(detail: Any) -> Any:
    if not isinstance(detail, dict):
        return detail
    return {name: _without_tracebacks(value) for name, value in detail.items() if name != "traceback"}


def error_document(error: Any) -> ErrorDocument | None:
    """What of a stored error is for callers."""
    if error is None:
        return None
    if not isinstance(error, dict):
        return ErrorDocument(type="", message=told_of(error) or "no error was recorded")
    return ErrorDocument(
        type=str(error.get("type") or ""),
        message=str(error.get("message") or ""),
        code=str(error["code"]) if error.get("code") else None,
    )
