"""Schedules as people and programs read them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from fencerow.core.model.instants import instant_us
from fencerow.core.model.job import At, AtOrNone, instant, moment
from fencerow.db.run import Row, as_int, as_int_or_none, text_or_none
from fencerow.schedules.cron import Cron
from fencerow.schedules.definition import Definition, InWindow, known, seed_of
from fencerow.schedules.definitions import RowKind, RowOrigin

UNREADABLE = "written by a newer Fencerow, or by hand"


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it stands, or one of its entities. Instants are microseconds since 1970, by the database's clock.

    `kind` is single, head (it stands for its entities, and fires for none) or entity. `origin` is code or person.
    `trouble`: why it does not fire in some worker, or why its entities are not looked after. Of a head, `entities` and
    `paused_entities` say how many there are, and `next_us` and `last_us` are the first and the latest of them.
    `forgotten_until_us`: of fires up to this one it is no longer known which made a job. `paused_with_all`: it is
    paused because all entities are. `undeclared_at_us`: since then neither code nor its list has it; the row is there
    for its pause, and does not fire.
    """

    name: str
    entity: str
    kind: RowKind
    job: str
    origin: RowOrigin
    owner: str
    definition: str
    digest: str
    version: int
    next_us: int | None = None
    last_us: int | None = None
    last_job_id: str | None = None
    zones: str | None = None
    paused_at_us: int | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    changed_at_us: int = 0
    changed_by: str | None = None
    trouble: str | None = None
    entities: int = 0
    paused_entities: int = 0
    forgotten_until_us: int | None = None
    paused_with_all: bool = False
    undeclared_at_us: int | None = None

    next = AtOrNone("next_us")
    last = AtOrNone("last_us")
    paused_at = AtOrNone("paused_at_us")
    changed_at = At("changed_at_us")
    forgotten_until = AtOrNone("forgotten_until_us")
    undeclared_at = AtOrNone("undeclared_at_us")

    @property
    def full_name(self) -> str:
        """The name, with the entity behind a slash."""
        return seed_of(self.name, self.entity)

    @property
    def rules(self) -> Definition | None:
        """What was stored; None if this Fencerow cannot read it."""
        try:
            return msgspec.json.decode(self.definition, type=Definition)
        except msgspec.DecodeError:
            return None

    def in_words(self) -> str:
        """When it fires, for people."""
        try:
            read = known(self.definition)
        except msgspec.DecodeError:
            return UNREADABLE
        windows = f"; {read.windows.in_words()}" if read.windows.windows else ""
        return read.spec.in_words() + windows

    def fires(self, after: datetime, count: int) -> list[datetime]:
        """Its next fires after an instant, in UTC, whether or not it is paused; none of a head.

        Raises:
            UnknownZone: this machine does not know its time zone. InvalidInput: the instant names no time zone.
        """
        return [moment(each) for each in fires_us(self, instant_us(after, "after"), count)]

    @property
    def fires_by_itself(self) -> bool:
        """Whether it fires when its time comes: it is no head, and nobody paused it."""
        return self.kind is not RowKind.HEAD and self.paused_at_us is None

    def on_the_wall(self, at: datetime) -> str | None:
        """What the clock shows at this instant in the zone that its cron expression names; None for UTC."""
        times = known(self.definition).spec.times
        if not isinstance(times, Cron) or times.zone_name == "UTC":
            return None
        return f"{at.astimezone(times.zone):%a %H:%M} {times.zone_name}"

    def starts(self, fire: datetime) -> datetime | None:
        """When the job of this fire may start: at once, or when its window ends. None: the window skips it."""
        return instant(starts_us(self, instant_us(fire, "fire")))

    def document(self) -> dict[str, Any]:
        """For JSON: instants as texts are made by the command."""
        rules = self.rules
        facts: dict[str, Any] = {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if name not in ("definition", "digest")
        }
        if rules is not None:
            facts |= {
                "when": rules.spec,
                "misfire": rules.misfire.value,
                "late_s": rules.late_s,
                "catchup_max": rules.catchup_max,
                "overlap": rules.overlap.value,
                "windows": rules.windows,
                "in_window": rules.in_window.value,
                "queue": rules.work.template.queue,
                "args": _plain(rules.work.args),
            }
        return facts


def fires_us(record: ScheduleRecord, after_us: int, count: int) -> list[int]:
    """`ScheduleRecord.fires` in microseconds since 1970."""
    if record.kind is RowKind.HEAD:
        return []
    spec, found = known(record.definition).spec, [after_us]
    for _ in range(count):
        found.append(spec.next_after(found[-1], seed_of(record.name, record.entity)))
    return found[1:]


def starts_us(record: ScheduleRecord, fire_us: int) -> int | None:
    """`ScheduleRecord.starts` in microseconds since 1970."""
    read = known(record.definition)
    opens_us = read.windows.opens_after(fire_us)
    if opens_us > fire_us and read.definition.in_window is InWindow.SKIP:
        return None
    return opens_us


def record_of(row: Row) -> ScheduleRecord:
    """A row of `read_schedules`."""
    (name, entity, kind, job, origin, owner, definition, version, next_us, last_us, last_job, zones,
     paused_us, paused_by, reason, changed_us, changed_by, trouble, digest, forgotten_us, with_all,
     undeclared_us) = row  # fmt: skip
    return ScheduleRecord(
        name=str(name),
        entity=str(entity),
        kind=RowKind(str(kind)),
        job=str(job),
        origin=RowOrigin(str(origin)),
        owner=str(owner),
        definition=str(definition),
        digest=str(digest),
        version=as_int(version),
        next_us=as_int_or_none(next_us),
        last_us=as_int_or_none(last_us),
        last_job_id=text_or_none(last_job),
        zones=text_or_none(zones),
        paused_at_us=as_int_or_none(paused_us),
        paused_by=text_or_none(paused_by),
        pause_reason=text_or_none(reason),
        changed_at_us=as_int(changed_us),
        changed_by=text_or_none(changed_by),
        trouble=text_or_none(trouble),
        forgotten_until_us=as_int_or_none(forgotten_us),
        paused_with_all=bool(with_all),
        undeclared_at_us=as_int_or_none(undeclared_us),
    )


def _plain(text: str) -> Any:
    return msgspec.json.decode(text)
