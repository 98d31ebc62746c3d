"""The documents of the gateway: what it takes, and what it answers. Instants are ISO 8601 in UTC."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fencerow.core.model.job import JobRecord, instant
from fencerow.core.model.packing import told_of

JobState = Literal["queued", "waiting", "running", "succeeded", "failed", "cancelled"]
Instant = Annotated[str, Meta(description="ISO 8601, in UTC", extra_json_schema={"format": "date-time"})]


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a caller sends: a field that nobody knows is refused."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway answers."""


class JobDocument(Told):
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
    error: ErrorDocument | None = None


class ErrorDocument(Told):
    """Why a job failed, as its last attempt reported it. Its traceback is for operators, and is not shown here."""

    type: str
    message: str
    code: str | None = None


def iso(us: int | None) -> str | None:
    """An instant for programs."""
    at = instant(us)
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def _surely(us: int) -> str:
    text = iso(us)
    assert text is not None
    return text


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
        submitted_at=_surely(job.submitted_at_us),
        run_at=_surely(job.run_at_us),
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
        error=error_document(job.error),
    )


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
