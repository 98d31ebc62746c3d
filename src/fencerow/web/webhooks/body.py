"""The body of a webhook: what is told of the end of a job. Made once, kept, and sent byte for byte. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from fencerow.core.model.job import JobRecord, moment
from fencerow.events.event import Event

RESULT_BYTES_MAX: Final = 16 * 1024
TOLD_OF_ERROR: Final = ("type", "message", "code")  # a traceback is nobody's business outside


def body_of(event: Event, job: JobRecord | None, *, with_result: bool) -> str:
    """The JSON text: `type`, `timestamp`, `data`. `job`: the one that ended, None if it is gone already."""
    document = {
        "type": event.topic,
        "timestamp": iso(event.published_at),
        "data": _data(event.data, job, with_result),
    }
    return msgspec.json.encode(document).decode()


def _data(told: Mapping[str, Any], job: JobRecord | None, with_result: bool) -> dict[str, Any]:
    data = {name: told[name] for name in ("job", "name", "queue", "attempt", "key")}
    if job is not None:
        data |= {
            "scope": job.scope,
            "tags": job.tags or [],
            "metadata": job.metadata or {},
            "headers": job.headers or {},
            "submitted_at": iso(moment(job.submitted_at_us)),
            "ended_at": None if job.ended_at_us is None else iso(moment(job.ended_at_us)),
        }
    if "error" in told:
        return {**data, "error": _error(told["error"])}
    return {**data, **_result(told)} if with_result else data


def _error(told: object) -> dict[str, Any] | None:
    return {name: told.get(name) for name in TOLD_OF_ERROR} if isinstance(told, dict) else None


def _result(told: Mapping[str, Any]) -> dict[str, Any]:
    if told.get("outside"):
        return {"result_left_out": "outside"}
    if len(msgspec.json.encode(told.get("result"))) > RESULT_BYTES_MAX:
        return {"result_left_out": "too_large"}
    return {"result": told.get("result")}


def iso(at: datetime) -> str:
    """An instant as webhooks tell it, always with microseconds."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
