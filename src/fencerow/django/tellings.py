"""What the admin's pages show of jobs, and the client by which they act."""

from __future__ import annotations

import json
from typing import Any

from fencerow.app import App
from fencerow.client import Client
from fencerow.core.model.job import JobRecord, instant
from fencerow.core.model.person import Person, Via
from fencerow.core.wing import witnessed
from fencerow.db.text import kind_and_text
from fencerow.doctor.why import briefly
from fencerow.web.dashboard.redacting import Redactor, text_without_secrets


def client_of(app: App, request: Any) -> Client:
    """A client that changes things in the name of who is logged in."""
    common, name = app.client, request.user.get_username()
    reason = request.POST.get("reason") or None
    person = Person(name, Via.HTTP, request.META.get("REMOTE_ADDR"), None, reason)
    made = Client(
        witnessed(common.engine, person), actor=name, telemetry=common.telemetry, ready=common.make_ready
    )
    made.encode_arguments, made.packing = common.encode_arguments, common.packing
    return made


def shown_row(job: JobRecord) -> dict[str, Any]:
    """A line of the list."""
    when = job.ended_at_us or job.claimed_at_us or job.run_at_us
    return {
        "id": job.id,
        "name": job.name,
        "queue": job.queue,
        "state": job.state.value,
        "attempt": job.attempt,
        "when": instant(when),
        "note": _error_line(job.error) or job.progress_note or "",
    }


def shown_job(app: App, client: Client, job_id: str) -> dict[str, Any]:
    """A page of one job, without secrets.

    Raises:
        JobNotFound: it is not there.
    """
    job = client.get(job_id)
    redactor = Redactor(None, app.jobs)
    error = job.error if isinstance(job.error, dict) else {}
    return {
        "job": job,
        "facts": _facts(job),
        "waits": None if job.is_final else client.run(briefly(job.id)),
        "arguments": _pretty(redactor.arguments(job.name, job.args)),
        "result": _pretty(redactor.result(job.name, job.result)) if job.result is not None else None,
        "error": _error_line(job.error),
        "traceback": text_without_secrets(str(error.get("traceback", ""))),
        "timeline": [
            {"at": instant(each.at_us), "kind": each.kind, "attempt": each.attempt, "actor": each.actor or ""}
            for each in client.timeline(job.id)
        ],
        "log": [
            {"at": instant(each.at_us), "level": each.level, "message": each.message}
            for each in client.logs(job.id)
        ],
    }


def _facts(job: JobRecord) -> list[tuple[str, Any]]:
    facts = [
        ("State", job.state.value),
        ("Queue", job.queue),
        ("Priority", job.priority),
        ("Attempt", f"{job.attempt}, with {job.failures} of {job.attempts_max} failures"),
        ("Due", instant(job.run_at_us)),
        ("Ended", instant(job.ended_at_us)),
        ("Submitted by", job.submitted_by),
        ("Tags", ", ".join(job.tags or ())),
        ("Progress", job.progress_note),
        ("Key", job.key),
    ]
    return [(name, value) for name, value in facts if value not in (None, "")]


def _error_line(error: Any) -> str:
    if not isinstance(error, dict):
        return ""
    return text_without_secrets(kind_and_text(str(error.get("type", "")), str(error.get("message", ""))))


def _pretty(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, default=str)
