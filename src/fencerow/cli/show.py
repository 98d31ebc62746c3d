"""How one job is shown to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fencerow.command import output
from fencerow.command.layout import Column
from fencerow.command.times import Times
from fencerow.core.app.declare import DeclaredBase
from fencerow.core.model.job import Happening, JobRecord
from fencerow.db.text import amount, percent
from fencerow.doctor.places import told_gate
from fencerow.handovers.looking import PlacedHandover
from fencerow.operators.looking import LogLine
from fencerow.operators.names import named
from fencerow.payloads.hiding import hidden_arguments, hidden_result
from fencerow.payloads.shown import told_of
from fencerow.unique.keys import UniqueKey

TEXT_MAX = 2_000
DETAIL_MAX = 300
NOBODY: Mapping[str, str] = MappingProxyType({})
TIMELINE = (
    Column("at"),
    Column("attempt", rank=1),
    Column("what"),
    Column("by whom, and why", least=36, folds=True),
)
LOG = (Column("at"), Column("attempt"), Column("level"), Column("message", least=20, folds=True))


def show_job(
    job: JobRecord,
    events: Sequence[Happening],
    logs: Sequence[LogLine],
    at: Times,
    unique: Sequence[UniqueKey] = (),
    handover: PlacedHandover | None = None,
    waits: str | None = None,
    names: Mapping[str, str] = NOBODY,
    declared: DeclaredBase[..., ..., Any, Any] | None = None,
) -> None:
    """Columns first, then what happened, in order.

    `unique`: the keys under which submits find the job. `handover`: who is to have its end. `waits`: why it
    has not started. `names`: of workers, by their ids. `declared`: the job as the application declares it, whose
    secrets are hidden.
    """
    output.facts(
        {
            "id": job.id,
            "job": job.name,
            "queue": job.queue,
            "state": job.state.value,
            "waits at": None if job.gate is None else told_gate(job.gate),
            "waits": waits,
            "damaged": f"{', '.join(job.damaged)}: cannot be read" if job.damaged else None,
            "priority": job.priority or None,
            "submitted": _with(at.full(job.submitted_at_us), job.submitted_by),
            "run at": at.full(job.run_at_us),
            "claimed": at.full(job.claimed_at_us),
            "holder": _worker(job.holder, names),
            "deadline": at.full(job.deadline_at_us) if not job.is_final else None,
            "ended": at.full(job.ended_at_us),
            "attempt": job.attempt,
            "failures": f"{job.failures} of {job.attempts_max}",
            "crashes": f"{job.crashes} of {job.crashes_max}" if job.crashes or job.suspect else None,
            "snoozes": f"{job.snoozes} of {job.snoozes_max}" if job.snoozes else None,
            "runs apart": "yes: a process died while it ran" if job.suspect and not job.is_final else None,
            "cancel asked": _with(at.full(job.cancel_requested_at_us), job.cancel_requested_by),
            "expires": at.full(job.expires_at_us),
            "revived": at.full(job.revived_at_us),
            "key": None if job.key is None else f"{job.scope}: {job.key}",
            "unique": "; ".join(_unique(each, at) for each in unique) or None,
            "replaced": _replaced(events, at),
            "handover": _handed(handover),
            "exclusive": _exclusive(job),
            "limits": ", ".join(job.limits or []) or None,
            "share": job.share,
            "affinity": _affinity(job),
            "tags": ", ".join(job.tags) if job.tags else None,
            "metadata": _json(job.metadata),
            "progress": None
            if job.progress is None
            else f"{percent(job.progress)} {job.progress_note or ''}".strip(),
            "arguments": told_of(job.args)
            or _json(hidden_arguments(declared, job.args, _hidden))
            or f"({amount(job.args_bytes, 'byte')} that are no JSON)",
            "result": told_of(job.result) or _json(hidden_result(declared, job.result, _hidden)),
        }
    )
    if job.error is not None:
        _show_error(job.error)
    if events:
        output.say()
        output.say("timeline")
        output.table(
            TIMELINE,
            [(at.fine(each.at_us), each.attempt, each.kind, _detail(each, at, names)) for each in events],
        )
    if logs:
        output.say()
        output.say("log")
        output.table(
            LOG,
            [(at.fine(each.at_us), each.attempt, each.level, each.message) for each in logs],
        )


def _hidden(value: Any) -> str:
    return f"(hidden, {amount(len(str(value)), 'character')})"


def _handed(found: PlacedHandover | None) -> str | None:
    if found is None:
        return None
    return f"to {found.handover.receiver}, key {found.handover.key}: {found.standing}"


def _unique(found: UniqueKey, at: Times) -> str:
    until = "" if found.until_us is None else f", until {at.when(found.until_us)}"
    return f"{found.scope}: {found.key}, since {at.when(found.first_us)}{until}"


def _replaced(events: Sequence[Happening], at: Times) -> str | None:
    """How often later submits under a unique key took the job's place, and which was the last."""
    notes = [each for each in events if each.kind == "replaced"]
    if not notes:
        return None
    last = notes[-1]
    submit = last.detail.get("submit") if isinstance(last.detail, dict) else None
    by = f" of {last.actor}" if last.actor else ""
    times = "once" if len(notes) == 1 else f"{len(notes)} times, the last time"
    return f"{times} {at.when(last.at_us)}, by submit {submit}{by}"


def _exclusive(job: JobRecord) -> str | None:
    """The key of which few jobs run at a time, and how many of them."""
    if job.exclusive is None:
        return None
    words = [job.exclusive, f"{job.exclusive_at_once or 1:,} at once"]
    return ", ".join([*words, "strict: it keeps its turn between its attempts"] if job.strict else words)


def _affinity(job: JobRecord) -> str | None:
    """The label that a worker must carry, and for how long."""
    if job.affinity is None:
        return None
    wait_s = job.affinity_wait_s
    return f"{job.affinity}, {'and nobody else' if wait_s is None else f'after {wait_s:g} s anybody'}"


def _show_error(error: object) -> None:
    output.say("error")
    if not isinstance(error, dict):
        output.say(f"  {_json(error)}")
        return
    for name, value in error.items():
        text = value if isinstance(value, str) else _json(value) or ""
        # A traceback keeps its lines; everything within a line is escaped.
        lines = text.splitlines() or [""]
        if len(lines) == 1:
            output.say_text(f"{name}: {lines[0]}", indent="  ")
            continue
        output.say(f"  {name}: {lines[0]}")
        for line in lines[1:]:
            output.say(f"    {line}")


def _worker(holder: str | None, names: Mapping[str, str]) -> str | None:
    """The worker by name, and its id, by which commands take it too."""
    if holder is None or holder not in names:
        return holder
    return f"{names[holder]} ({holder})"


def _detail(each: Happening, at: Times, names: Mapping[str, str]) -> str | None:
    """Who did it, then the rest in words; an error is told by its type and message, its traceback stands above."""
    words = [] if each.actor is None else [f"by {named(each.actor, names)}"]
    if each.kind == "changed" and isinstance(each.detail, dict):
        words += [_changed(name, value, at) for name, value in each.detail.items() if name != "args_was"]
    elif isinstance(each.detail, dict):
        hidden = ("_us", "args_was")
        shown = {name: value for name, value in each.detail.items() if not name.endswith(hidden)}
        words += [_told(name, value) for name, value in shown.items()]
    elif each.detail is not None:
        words.append(output.document(each.detail))
    text = "; ".join(words)
    return text if len(text) <= DETAIL_MAX else f"{text[:DETAIL_MAX]}…"


def _changed(name: str, value: object, at: Times) -> str:
    """What a change left of one column: as it was, and as it is."""
    if not isinstance(value, list) or len(value) != 2:
        return _told(name, value)
    was, now = value
    if name == "args_bytes":
        return f"arguments: of {was} bytes → of {now}"
    if name == "run_at_us" and isinstance(was, int) and isinstance(now, int):
        return f"run at: {at.when(was)} → {at.when(now)}"
    return f"{name}: {_plain(was)} → {_plain(now)}"


def _plain(value: object) -> str:
    """One side of a change: the names of limits in a row, and what was not there as none."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def _told(name: str, value: object) -> str:
    if isinstance(value, dict) and "type" in value and "message" in value:
        return ": ".join(str(value[each]) for each in ("type", "message") if value[each])
    if isinstance(value, dict) and name == "detail":
        return "; ".join(_told(*pair) for pair in value.items())
    return f"{name}: {value if isinstance(value, str) else output.document(value)}"


def _with(moment: str | None, who: str | None) -> str | None:
    return moment if moment is None or who is None else f"{moment} by {who}"


def _json(value: object) -> str | None:
    if value is None:
        return None
    text = output.document(value)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text)} characters; --json has all)"
