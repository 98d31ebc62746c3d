"""Schedules: when each fires next and fired last, what is wrong; pause and resume it, run it now, remove it."""

from __future__ import annotations

from typing import Any

from fencerow.core.errors import FencerowError
from fencerow.core.model.job import moment
from fencerow.db.text import amount
from fencerow.payloads.shown import told_of
from fencerow.schedules.command_texts import WHY_NONE
from fencerow.schedules.definitions import RowKind
from fencerow.schedules.shown import UNREADABLE, ScheduleRecord, fires_us, starts_us
from fencerow.schedules.ticking import Tick
from fencerow.web.dashboard.calendar import FireMark, calendar_of
from fencerow.web.dashboard.redacting import Redactor
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section

SHOWN = 500
ENTITIES_SHOWN = 200
FIRES = 10
FIRES_DRAWN = 60
TICKS = 40
TICKS_SHOWN = 20


async def schedules(look: Look) -> dict[str, Any]:
    """Three statements: a page of schedules, the counts of their entities, the clock."""
    after = look.query.get("after", "")
    found = await look.client.schedules.alisted(after=(after, ""), limit=SHOWN + 1)
    shown = found[:SHOWN]
    return {
        "now_us": await look.now_us(),
        "schedules": [(each, in_words(each)) for each in shown],
        "more": shown[-1].name if len(found) > SHOWN else None,
        "after": after,
    }


async def schedule(look: Look) -> dict[str, Any]:
    """Six statements at most: the schedule with its counts, its latest fires, a page of its entities, the clock."""
    verbs = look.client.schedules
    name, entity = look.query.get("name", ""), look.query.get("entity", "")
    found = await verbs.aget(name, entity)
    ticks = await verbs.aticks(name, entity or None, limit=TICKS)
    is_head = found.kind is RowKind.HEAD
    now_us = await look.now_us()
    after = look.query.get("after", "")
    entities = await _entities(look, name, after) if is_head else []
    fires, trouble = next_fires(found, now_us)
    return {
        "now_us": now_us,
        "schedule": found,
        "is_head": is_head,
        "words": in_words(found),
        "fires": fires,
        "unknown_fires": trouble,
        "ticks": ticks[:TICKS_SHOWN],
        "weeks": None if is_head else calendar_of(_marks(found, ticks, now_us), now_us),
        "why_none": WHY_NONE,
        "entities": entities[:ENTITIES_SHOWN],
        "more": entities[ENTITIES_SHOWN - 1].entity if len(entities) > ENTITIES_SHOWN else None,
        **_submits(found, look.redactor),
    }


async def _entities(look: Look, name: str, after: str) -> list[ScheduleRecord]:
    """A page of them, and one more if there is one. The row behind the empty entity is that of the schedule itself."""
    found = await look.client.schedules.alisted(
        name=name, entities=True, after=(name, after), limit=ENTITIES_SHOWN + 2
    )
    return [each for each in found if each.kind is not RowKind.HEAD]


def in_words(record: ScheduleRecord) -> str:
    """When it fires; of one that this machine cannot compute with, why not."""
    try:
        return record.in_words()
    except FencerowError as error:
        return f"{error.what}: {error.why}"


def next_fires(record: ScheduleRecord, now_us: int) -> tuple[list[tuple[int, str | None, str]], str | None]:
    """The next ten: when, what the clock shows in its own zone, what a window does to it. Else why none is known."""
    if record.kind is RowKind.HEAD or record.rules is None:
        return [], UNREADABLE if record.rules is None else None
    try:
        fires = fires_us(record, now_us, FIRES)
        if record.next_us is not None and record.next_us <= now_us:
            fires = [record.next_us, *fires[:-1]]  # it is overdue: that one is made at once
        return [(each, record.on_the_wall(moment(each)), _window(record, each)) for each in fires], None
    except FencerowError as error:
        return [], f"{error.what}: {error.why}"


def _marks(record: ScheduleRecord, ticks: list[Tick], now_us: int) -> list[FireMark]:
    """Its latest fires, and those to come: none of one that is paused or cannot be computed with."""
    marks = [FireMark(each.fire_us, each.state, coming=False) for each in ticks]
    if record.paused_at_us is not None or record.rules is None:
        return marks
    try:
        coming = fires_us(record, now_us, FIRES_DRAWN)
    except FencerowError:
        return marks
    return marks + [FireMark(each, None, coming=True) for each in coming]


def _window(record: ScheduleRecord, fire_us: int) -> str:
    begins_us = starts_us(record, fire_us)
    if begins_us is None:
        return "in a maintenance window: no job"
    return "" if begins_us == fire_us else "in a maintenance window: its job starts behind it"


def _submits(record: ScheduleRecord, redactor: Redactor) -> dict[str, Any]:
    """The queue and the arguments of its jobs, without what is secret."""
    document = record.document()
    args = document.get("args")
    sealed = None if args is None else told_of(args)
    shown = None if args is None or sealed is not None else redactor.arguments(record.job, args)
    return {"queue": document.get("queue"), "args": shown, "args_sealed": sealed}


async def pause(act: Act) -> PressAnswer:
    """Let it fire no more."""
    name, entity = _meant(act)
    if rows := await act.client.schedules.apause(name, entity, reason=act.reason):
        return PressAnswer(f"{_full(name, entity)} is paused{_rows(rows)}. Jobs that it has made go on.")
    return PressAnswer(f"{_full(name, entity)} was paused already; the first reason is kept.", changed=False)


async def resume(act: Act) -> PressAnswer:
    """Let it fire again."""
    name, entity = _meant(act)
    if rows := await act.client.schedules.aresume(name, entity):
        return PressAnswer(f"{_full(name, entity)} fires again at its next time{_rows(rows)}.")
    return PressAnswer(f"{_full(name, entity)} was not paused.", changed=False)


async def run_now(act: Act) -> PressAnswer:
    """Submit its job now."""
    name, entity = _meant(act)
    runs = await act.client.schedules.arun(name, entity)
    made = sum(each.job_id is not None for each in runs)
    if not made:
        return PressAnswer(
            f"{_full(name, entity)} made no job, because an earlier one has not ended.", changed=False
        )
    left = f" {amount(len(runs) - made, 'earlier one')} had not ended, so no job was made there." * (
        made < len(runs)
    )
    return PressAnswer(f"{_full(name, entity)} has submitted {amount(made, 'job')}.{left}")


async def remove(act: Act) -> PressAnswer:
    """Remove one that people made."""
    name, entity = _meant(act)
    rows = await act.client.schedules.aremove(name, entity)
    return PressAnswer(f"{_full(name, entity)} is removed{_rows(rows)}. Its jobs stay.", to="/schedules")


def _meant(act: Act) -> tuple[str, str | None]:
    return act.form.get("name", ""), act.form.get("entity") or None


def _full(name: str, entity: str | None) -> str:
    return f"Schedule {name}" if entity is None else f"Entity {entity} of schedule {name}"


def _rows(rows: int) -> str:
    return f" ({rows} rows)" if rows > 1 else ""


ACTIONS = (
    Action("/schedules/pause", pause),
    Action("/schedules/resume", resume),
    Action("/schedules/run", run_now),
    Action("/schedules/remove", remove),
)
SCREENS = (
    Screen(
        "schedules", "/schedules", "Schedules", schedules,
        section=Section.WORK, place=50, key="s", actions=ACTIONS,
    ),
    Screen("schedule", "/schedules/one", "Schedule", schedule, place=51),
)  # fmt: skip
