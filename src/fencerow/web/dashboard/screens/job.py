"""One job: what happened to it, by whom, its errors, arguments, logs; and what a person can do about it."""

from __future__ import annotations

from typing import Any

from fencerow.core.client.refs import CancelAnswer
from fencerow.core.errors import InvalidInput
from fencerow.core.model.ids import parse_id
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import State, WorkerState
from fencerow.core.store.workers import list_workers
from fencerow.db.run import ask
from fencerow.doctor.places import told_gate
from fencerow.doctor.why import why
from fencerow.operators import looking
from fencerow.operators.job_verbs import timeline_of
from fencerow.operators.queues import paused_queue
from fencerow.payloads.shown import told_of
from fencerow.web.dashboard.counting.inside import inside_job
from fencerow.web.dashboard.life import life_of
from fencerow.web.dashboard.redacting import Redactor, text_without_secrets
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen
from fencerow.web.dashboard.screens import job_inside
from fencerow.web.dashboard.screens.job_inside import after_of, shown_steps
from fencerow.web.dashboard.timeline import lines_of

EVENTS_MAX = 500
LINES_MAX = 500
WORKERS_MAX = 200
WHY_STATEMENTS_MAX = (
    60  # it asks of each condition and worker by itself, and only when somebody wants to know
)
TRACE_DIGITS = 32


async def job(look: Look) -> dict[str, Any]:
    """Six statements: the job, its notes, its lines, the workers' names, its queue's pause, what wings keep of it."""
    client, after = look.client, after_of(look.query)
    job_id = parse_id(look.params["id"])
    record = await client.aget(job_id)
    noted = await client.arun(ask(looking.events(job_id, limit=EVENTS_MAX)))
    lines = await client.arun(ask(looking.logs(job_id, limit=LINES_MAX)))
    workers = await client.arun(ask(list_workers(limit=WORKERS_MAX)))
    names = {each.id: f"{each.name} ({each.host}, pid {each.pid})" for each in workers}
    pause = await client.arun(ask(paused_queue(record.queue)))
    holder = next((each for each in workers if each.id == record.holder), None)
    inside = await client.arun(ask(inside_job(job_id, after=after)))
    now_us = inside.now_us
    happenings = timeline_of(record, noted)
    return {
        "now_us": now_us,
        "job": record,
        "timeline": lines_of(happenings, names, record.error),
        "life": life_of(happenings, until_us=now_us, waits=record.state is State.WAITING),
        "cut": len(noted) == EVENTS_MAX or len(lines) == LINES_MAX,
        "claims": record.attempt,
        "logs": [(each, text_without_secrets(each.message)) for each in lines],
        "holder": holder,
        "alive": any(each.state == WorkerState.ALIVE for each in workers),
        "pause": pause,
        "gate": None if record.gate is None else told_gate(record.gate),
        "trace": trace_of(record),
        "inside": inside,
        "is_first_steps": not after,
        **shown_steps(record.name, inside, look.redactor),
        **_payloads(record, look.redactor),
    }


def _payloads(record: JobRecord, redactor: Redactor) -> dict[str, Any]:
    """What was given to it and came of it, without what is secret. What is sealed is told as such."""
    found: dict[str, Any] = {}
    for name, value, shown in (
        ("args", record.args, redactor.arguments),
        ("result", record.result, redactor.result),
        ("metadata", record.metadata, redactor.shown),
        ("headers", record.headers, redactor.shown),
    ):
        sealed = told_of(value)
        found[name] = None if sealed is not None or value is None else shown(record.name, value)
        found[f"{name}_sealed"] = sealed
    return found


def trace_of(record: JobRecord) -> str | None:
    """The trace that the job belongs to, as its headers say."""
    parts = (record.headers or {}).get("traceparent", "").split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == TRACE_DIGITS else None


async def why_not(look: Look) -> dict[str, Any]:
    """Each condition of the job's claim, with what was found: what `fencerow why` prints."""
    diagnosis = await look.client.arun(ask(why(parse_id(look.params["id"]))))
    broken = [each for each in diagnosis.conditions if each.holds is False]
    return {
        "diagnosis": diagnosis,
        "broken": broken,
        "rest": [each for each in diagnosis.conditions if each.holds is not False],
    }


async def cancel(act: Act) -> PressAnswer:
    """Cancel it at once if nobody runs it, else ask its worker."""
    done = await act.client.acancel(act.params["id"], reason=act.reason)
    if done is CancelAnswer.CANCELLED:
        return PressAnswer("The job is cancelled. It never runs again, unless somebody revives it.")
    return PressAnswer("A worker runs the job. It was asked to stop; the timeline tells when it has.")


async def revive(act: Act) -> PressAnswer:
    """Queue it again after its end."""
    await act.client.arevive(act.params["id"], reason=act.reason)
    return PressAnswer("The job is queued again. Its budgets begin anew, and its attempts are counted on.")


async def run_now(act: Act) -> PressAnswer:
    """Make it due at once."""
    done = await act.client.arun_now(act.params["id"], reason=act.reason)
    if not done.changes:
        return PressAnswer("The job was due already, and keeps its place in its queue.", changed=False)
    return PressAnswer("The job is due now.")


async def change(act: Act) -> PressAnswer:
    """Change its priority, its queue, or when it is due."""
    form = act.form
    priority, delay_s = form.get("priority"), form.get("delay_s")
    done = await act.client.achange(
        act.params["id"],
        priority=_whole(priority, "the priority") if priority else None,
        delay_s=_whole(delay_s, "the delay") if delay_s else None,
        queue=form.get("queue") or None,
        reason=act.reason,
    )
    if not done.changes:
        return PressAnswer("It was so already. Nothing was changed.", changed=False)
    return PressAnswer(f"Changed: {', '.join(_WORDS.get(each, each) for each in done.changes)}.")


async def delete(act: Act) -> PressAnswer:
    """Remove it, after its end."""
    await act.client.adelete(act.params["id"])
    return PressAnswer("The job is removed, with its timeline and its lines.", to="/jobs")


def _whole(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(
            f"{what} is {ascii(text)[:40]}", "a whole number is expected", "correct it"
        ) from None


_WORDS = {"run_at_us": "when it is due", "args_bytes": "its arguments"}
ACTIONS = (
    Action("/jobs/{id}/cancel", cancel),
    Action("/jobs/{id}/revive", revive),
    Action("/jobs/{id}/run-now", run_now),
    Action("/jobs/{id}/change", change),
    Action("/jobs/{id}/delete", delete),
    *job_inside.ACTIONS,
)
SCREENS = (
    Screen("job", "/jobs/{id}", "Job", job, place=21, actions=ACTIONS),
    Screen(
        "job_why",
        "/jobs/{id}/why",
        "Why is it not running?",
        why_not,
        place=22,
        live=False,
        statements_max=WHY_STATEMENTS_MAX,
    ),
)
