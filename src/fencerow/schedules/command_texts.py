"""What `fencerow schedules` shows of a schedule and of its fires."""

from __future__ import annotations

from typing import Any

from fencerow.command import output
from fencerow.command.documents import instants
from fencerow.command.layout import Column
from fencerow.command.times import Times
from fencerow.core.model.job import moment
from fencerow.payloads.shown import told_of
from fencerow.schedules.definitions import RowKind
from fencerow.schedules.misfire import COUNTED_MAX
from fencerow.schedules.shown import ScheduleRecord
from fencerow.schedules.ticking import Made, Tick

COLUMNS = (
    Column("schedule", least=12),
    Column("when", least=16, folds=True, lines=3),
    Column("next"),
    Column("last", rank=1),
    Column("job", least=8, rank=2),
    Column("made by", rank=3),
    Column("paused or in trouble", least=16, folds=True, lines=4),
)
TICKS = (Column("fire"), Column("entity", least=8), Column("made"), Column("job id"), Column("by", rank=1))
WHY_NONE = {
    Made.OVERLAP: "none: an earlier job had not ended",
    Made.WINDOW: "none: in a maintenance window",
    Made.LATE: "none: it was missed",
}


def row_of(found: ScheduleRecord, at: Times) -> tuple[object, ...]:
    entities = f"; {found.entities} entities" if found.kind is RowKind.HEAD else ""
    paused = found.paused_at_us is not None
    return (
        found.full_name,
        found.in_words() + entities if found.undeclared_at_us is None else "no longer declared",
        None if paused else at.when(found.next_us),
        at.when(found.last_us),
        found.job,
        found.origin.value,
        _paused(found, at) or found.trouble,
    )


def _paused(found: ScheduleRecord, at: Times) -> str | None:
    if found.paused_at_us is None:
        some = found.paused_entities
        return f"{some} entities are paused" if some else None
    by = f" by {found.paused_by}" if found.paused_by else ""
    reason = f": {found.pause_reason}" if found.pause_reason else ""
    return f"paused {at.when(found.paused_at_us)}{by}{reason}"


def facts_of(found: ScheduleRecord, at: Times) -> dict[str, object]:
    document = found.document()
    args, is_head = document.get("args"), found.kind is RowKind.HEAD
    return {
        "schedule": found.full_name,
        "when": f"{found.in_words()}{', unless an entity has other times' if is_head else ''}",
        "next": _next(found, at),
        "last": at.full(found.last_us),
        "last job": found.last_job_id,
        "job": f"{found.job} in queue {document.get('queue')}",
        "arguments": None if found.kind is RowKind.HEAD else told_of(args) or output.document(args),
        "entities": found.entities if found.kind is RowKind.HEAD else None,
        "rules": " ".join(sentences(found)[1:]),
        "made by": f"{found.origin.value}, version {found.version}",
        "changed": f"{at.full(found.changed_at_us)} by {found.changed_by}",
        "time zones": found.zones,
        "paused": _paused(found, at),
        "trouble": found.trouble,
    }


def _next(found: ScheduleRecord, at: Times) -> str | None:
    if found.next_us is None:
        return None
    whose = (
        " (of its entities the first)" if found.kind is RowKind.HEAD else on_the_wall(found, found.next_us)
    )
    return f"{at.full(found.next_us)}{whose}"


def sentences(found: ScheduleRecord) -> list[str]:
    """When it fires, and its rules, each a sentence."""
    rules = found.rules
    lines = [f"{found.full_name} fires: {found.in_words()}."]
    if rules is None:
        return lines
    missed = {
        "one": "Of fires that were missed, the latest is made up.",
        "skip": f"Fires that are more than {rules.late_s:g} s late are left out.",
        "all": f"All fires that were missed are made up, at most {rules.catchup_max} in one pass.",
    }
    overlap = {
        "skip": "While an earlier job has not ended, a fire makes none.",
        "allow": "Its jobs may overlap.",
        "queue": "Its jobs run one after the other, in the order in which they were made.",
    }
    lines += [missed[rules.misfire.value], overlap[rules.overlap.value]]
    if rules.windows:
        deferred = "makes a job that is due at its end" if rules.in_window.value == "defer" else "makes none"
        lines.append(f"A fire in a maintenance window {deferred}.")
    return lines


def document_of(found: ScheduleRecord) -> dict[str, Any]:
    return instants(found.document().items())


def tick_of(tick: Tick, at: Times) -> tuple[object, ...]:
    made = f"a job, {tick.state or 'gone'}" if tick.made is Made.JOB else WHY_NONE[tick.made]
    counted = f"{tick.left_out} or more" if tick.left_out >= COUNTED_MAX - 1 else str(tick.left_out)
    left_out = f"; {counted} others were missed" if tick.left_out else ""
    return at.when(tick.fire_us), tick.entity, made + left_out, tick.job_id, tick.made_by


def on_the_wall(row: ScheduleRecord, fire_us: int) -> str:
    """What the clock shows in the schedule's own zone."""
    wall = row.on_the_wall(moment(fire_us))
    return "" if wall is None else f", {wall}"
