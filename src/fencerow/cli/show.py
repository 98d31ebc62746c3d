"""How one job is shown to a person."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.command import output
from fencerow.core.model.job import Happening, JobRecord, LogLine

TEXT_MAX = 2_000
DETAIL_MAX = 200


def show_job(job: JobRecord, events: Sequence[Happening], logs: Sequence[LogLine]) -> None:
    """Columns first, then what happened, in order."""
    output.facts(
        {
            "id": job.id,
            "job": job.name,
            "queue": job.queue,
            "state": job.state.value,
            "damaged": f"{', '.join(job.damaged)}: cannot be read" if job.damaged else None,
            "priority": job.priority or None,
            "submitted": _with(output.when(job.submitted_at_us), job.submitted_by),
            "run at": output.when(job.run_at_us),
            "claimed": output.when(job.claimed_at_us),
            "holder": job.holder,
            "deadline": output.when(job.deadline_at_us) if not job.is_final else None,
            "ended": output.when(job.ended_at_us),
            "attempt": job.attempt,
            "failures": f"{job.failures} of {job.attempts_max}",
            "crashes": f"{job.crashes} of {job.crashes_max}" if job.crashes or job.suspect else None,
            "snoozes": f"{job.snoozes} of {job.snoozes_max}" if job.snoozes else None,
            "suspect": "yes: its last process died while it ran"
            if job.suspect and not job.is_final
            else None,
            "cancel asked": _with(output.when(job.cancel_requested_at_us), job.cancel_requested_by),
            "expires": output.when(job.expires_at_us),
            "revived": output.when(job.revived_at_us),
            "key": None if job.key is None else f"{job.scope}: {job.key}",
            "tags": ", ".join(job.tags) if job.tags else None,
            "metadata": _json(job.metadata),
            "progress": None
            if job.progress is None
            else f"{job.progress:g} % {job.progress_note or ''}".strip(),
            "arguments": _json(job.args) or f"({job.args_bytes} bytes that are no JSON)",
            "result": _json(job.result),
        }
    )
    if job.error is not None:
        _show_error(job.error)
    if events:
        output.say("timeline")
        output.table(
            ("at", "attempt", "what", "who", "detail"),
            [
                (output.when(each.at_us), each.attempt, each.kind, each.actor, _detail(each.detail))
                for each in events
            ],
        )
    if logs:
        output.say("log")
        output.table(
            ("at", "attempt", "level", "message"),
            [(output.when(each.at_us), each.attempt, each.level, each.message) for each in logs],
        )


def _show_error(error: object) -> None:
    output.say("error")
    if not isinstance(error, dict):
        output.say(f"  {_json(error)}")
        return
    for name, value in error.items():
        text = value if isinstance(value, str) else _json(value) or ""
        # A traceback keeps its lines; everything within a line is escaped.
        lines = text.splitlines() or [""]
        output.say(f"  {name}: {lines[0]}")
        for line in lines[1:]:
            output.say(f"    {line}")


def _detail(detail: object) -> str | None:
    """One short line; an error is told by its type and message, its traceback stands above or in --json."""
    if not isinstance(detail, dict):
        return _json(detail)
    shown = {name: value for name, value in detail.items() if not name.endswith("_us")}
    error = shown.get("error")
    if isinstance(error, dict):
        shown["error"] = f"{error.get('type')}: {error.get('message')}"
    text = output.document(shown) if shown else ""
    return text if len(text) <= DETAIL_MAX else f"{text[:DETAIL_MAX]}…"


def _with(moment: str | None, who: str | None) -> str | None:
    return moment if moment is None or who is None else f"{moment} by {who}"


def _json(value: object) -> str | None:
    if value is None:
        return None
    text = output.document(value)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text)} characters; --json has all)"
