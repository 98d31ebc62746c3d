"""Schedules over HTTP: look at them, see when they fire next, pause, resume, run one now.

What they submit is not shown: arguments may be secret.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fencerow.command.times import iso
from fencerow.core.model.instants import instant_us
from fencerow.errors import UnknownLimit, UnknownSchedule, UnknownZone
from fencerow.schedules.shown import ScheduleRecord, starts_us
from fencerow.web.gateway.queues import Reason
from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.gateway.telling import each, told
from fencerow.web.gateway.turns import Shown
from fencerow.web.tokens.scope import Scope

Name = Annotated[str, Meta(min_length=1, max_length=300)]


class ScheduleDocument(Told, frozen=True, kw_only=True):
    """A schedule, or one of its entities. What follows `in_words` is null where its rules cannot be read here."""

    name: str
    entity: str
    kind: str
    job: str
    origin: str
    owner: str
    version: int
    next: Instant | None
    last: Instant | None
    last_job_id: str | None
    zones: str | None
    paused_at: Instant | None
    paused_by: str | None
    pause_reason: str | None
    paused_with_all: bool
    changed_at: Instant
    changed_by: str | None
    trouble: str | None
    entities: int
    paused_entities: int
    undeclared_at: Instant | None
    in_words: str
    queue: str | None = None
    when: dict[str, Any] | None = None
    misfire: str | None = None
    late_s: float | None = None
    catchup_max: int | None = None
    overlap: str | None = None
    in_window: str | None = None


class ScheduleList(Told, frozen=True, kw_only=True):
    """Schedules by name. `next`: the place of the page after it, null if there is none."""

    schedules: list[ScheduleDocument]
    next: Place | None


class Place(Told, frozen=True, kw_only=True):
    """The last row of a page: send both as `after` and `after_entity`."""

    after: str
    after_entity: str


class TickDocument(Told, frozen=True, kw_only=True):
    """A fire: which job it made, or why none; `left_out` others were missed until then."""

    entity: str
    fire: Instant
    made: str
    job_id: str | None
    left_out: int
    at: Instant
    made_by: str | None
    state: str | None


class ScheduleShown(Told, frozen=True, kw_only=True):
    """A schedule, and its latest fires, the newest first."""

    schedule: ScheduleDocument
    ticks: list[TickDocument]


class Fire(Told, frozen=True, kw_only=True):
    """When it fires, and when its job may start: null where a maintenance window skips the fire."""

    fires: Instant
    starts: Instant | None


class Fires(Told, frozen=True, kw_only=True):
    """The next fires, whether or not it is paused; none of a schedule with entities: ask for one of them."""

    fires: list[Fire]


class SchedulesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All, or those of one name; with `entities` their rows as well."""

    name: Name | None = None
    entities: bool = False
    limit: Shown = 100
    after: str = ""
    after_entity: str = ""


class ScheduleQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which schedule or entity, and how many fires."""

    name: Name
    entity: str = ""
    count: Shown = 5


class Which(Given, frozen=True, kw_only=True):
    """A schedule with all its entities, or one of them."""

    name: Name
    entity: Name | None = None


class PauseSchedule(Which, frozen=True, kw_only=True):
    """Which, and why."""

    reason: Reason | None = None


class ResumeSchedule(Which, frozen=True, kw_only=True):
    """Which, and whether it fires at once besides."""

    run_now: bool = False


class RunSchedule(Which, frozen=True, kw_only=True):
    """Which; with `force` also while an earlier job has not ended."""

    force: bool = False


class RowsChanged(Told, frozen=True, kw_only=True):
    """How many rows this has changed."""

    name: str
    entity: str | None
    changed: int


class Run(Told, frozen=True, kw_only=True):
    """The job of a row, or null because an earlier one has not ended."""

    entity: str
    job_id: str | None


class Runs(Told, frozen=True, kw_only=True):
    """What came of each row."""

    runs: list[Run]


async def list_schedules(call: Call) -> Answer:
    """Schedules by name: when they fire, the next and the last fire, and what is paused or in trouble."""
    everywhere(call, "schedules")
    wanted: SchedulesQuery = call.query
    found = await call.client.schedules.alisted(
        name=wanted.name,
        entities=wanted.entities,
        after=(wanted.after, wanted.after_entity),
        limit=wanted.limit + 1,
    )
    shown = found[: wanted.limit]
    last = Place(after=shown[-1].name, after_entity=shown[-1].entity) if len(found) > len(shown) else None
    return Answer(200, ScheduleList(schedules=[_document(row) for row in shown], next=last))


async def show_schedule(call: Call) -> Answer:
    """A schedule: its rules, and which job each of its last `count` fires made."""
    everywhere(call, "schedules")
    wanted: ScheduleQuery = call.query
    found = await call.client.schedules.aget(wanted.name, wanted.entity)
    ticks = await call.client.schedules.aticks(wanted.name, wanted.entity or None, limit=wanted.count)
    return Answer(200, ScheduleShown(schedule=_document(found), ticks=each(TickDocument, ticks)))


async def next_fires(call: Call) -> Answer:
    """When a schedule fires next."""
    everywhere(call, "schedules")
    wanted: ScheduleQuery = call.query
    found = await call.client.schedules.aget(wanted.name, wanted.entity)
    coming = await call.client.schedules.anext_fires(wanted.name, wanted.entity, count=wanted.count)
    instants = [instant_us(each, "a fire") for each in coming]
    fires = [{"fires": iso(at_us), "starts": iso(starts_us(found, at_us))} for at_us in instants]
    return Answer(200, Fires(fires=each(Fire, fires)))


async def pause(call: Call) -> Answer:
    """Let a schedule fire no more until it is resumed; deploys do not end the pause. It may be repeated."""
    everywhere(call, "schedules")
    wanted: PauseSchedule = call.body
    changed = await call.acting.schedules.apause(wanted.name, wanted.entity, reason=wanted.reason)
    return Answer(200, told(RowsChanged, wanted, changed=changed))


async def resume(call: Call) -> Answer:
    """Let a schedule fire again, at its next time. It may be repeated."""
    everywhere(call, "schedules")
    wanted: ResumeSchedule = call.body
    changed = await call.acting.schedules.aresume(wanted.name, wanted.entity, run_now=wanted.run_now)
    return Answer(200, told(RowsChanged, wanted, changed=changed))


async def run_now(call: Call) -> Answer:
    """Submit its job now, also while it is paused. A repeat submits again."""
    everywhere(call, "schedules")
    wanted: RunSchedule = call.body
    runs = await call.acting.schedules.arun(wanted.name, wanted.entity, force=wanted.force)
    return Answer(200, Runs(runs=each(Run, runs)))


def _document(found: ScheduleRecord) -> ScheduleDocument:
    rules = found.rules
    more: dict[str, Any] = {}
    if rules is not None:
        more = {
            "queue": rules.work.template.queue,
            "when": msgspec.to_builtins(rules.spec),
            "misfire": rules.misfire.value,
            "late_s": rules.late_s,
            "catchup_max": rules.catchup_max,
            "overlap": rules.overlap.value,
            "in_window": rules.in_window.value,
        }
    return told(ScheduleDocument, found, in_words=found.in_words(), **more)


ROUTES = (
    Route(
        "GET", "/v1/schedules", "listSchedules", list_schedules, Scope.READ, {200: ScheduleList},
        query=SchedulesQuery, tag="schedules",
    ),
    Route(
        "GET", "/v1/schedules/show", "showSchedule", show_schedule, Scope.READ, {200: ScheduleShown},
        query=ScheduleQuery, refusals=(UnknownSchedule,), tag="schedules",
    ),
    Route(
        "GET", "/v1/schedules/next", "nextFires", next_fires, Scope.READ, {200: Fires},
        query=ScheduleQuery, refusals=(UnknownSchedule, UnknownZone), tag="schedules",
    ),
    Route(
        "POST", "/v1/schedules/pause", "pauseSchedule", pause, Scope.OPERATE, {200: RowsChanged},
        body=PauseSchedule, refusals=(UnknownSchedule,), tag="schedules",
    ),
    Route(
        "POST", "/v1/schedules/resume", "resumeSchedule", resume, Scope.OPERATE, {200: RowsChanged},
        body=ResumeSchedule, refusals=(UnknownSchedule,), tag="schedules",
    ),
    Route(
        "POST", "/v1/schedules/run", "runSchedule", run_now, Scope.OPERATE, {200: Runs},
        body=RunSchedule, refusals=(UnknownSchedule, UnknownLimit), tag="schedules",
    ),
)  # fmt: skip
