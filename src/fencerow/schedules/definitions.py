"""Rows of schedules made, changed, removed, paused and resumed. Each operation locks what it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import msgspec

from fencerow.calendar.zones import tzdata_version
from fencerow.db.run import Row, Steps, as_int, as_int_or_none, execute, first_column, operation
from fencerow.schedules.definition import Definition, digest_of, known, seed_of
from fencerow.schedules.ticking import Key
from fencerow.turns.limiting import refuse_unknown_limits

PUT_ROWS = 200  # meanwhile nothing else runs in the event loop


class RowKind(StrEnum):
    """A schedule by itself, one that stands for its entities, or an entity."""

    SINGLE = "single"
    HEAD = "head"
    ENTITY = "entity"


class RowOrigin(StrEnum):
    """Who made a row."""

    CODE = "code"
    PERSON = "person"


@dataclass(frozen=True)
class WantedRow:
    """A row as it should be. Its text is made once: by whoever has the time for ten thousand of them."""

    name: str
    entity: str
    kind: RowKind
    definition: Definition

    @property
    def key(self) -> Key:
        return self.name, self.entity

    @cached_property
    def text(self) -> str:
        """The definition as it is stored."""
        return self.definition.text()

    @cached_property
    def digest(self) -> str:
        """By which it is compared with what stands there."""
        return digest_of(self.text)


@dataclass(frozen=True, slots=True)
class StandingRow:
    """A row as it stands, locked."""

    entity: str
    kind: RowKind
    origin: RowOrigin
    text: str
    digest: str
    forgotten_us: int | None
    next_us: int | None
    paused: bool
    paused_with_all: bool
    undeclared: bool
    now_us: int

    def next_us_of(self, name: str) -> int | None:
        """Its first fire after now, whatever it was missing; None for a head."""
        if self.kind is RowKind.HEAD:
            return None
        return known(self.text).spec.next_after(self.now_us, seed_of(name, self.entity))


@dataclass(frozen=True, slots=True)
class Put:
    """What came of rows that should be so: made, changed, or left because somebody else made them. The rest was so."""

    made: list[Key] = field(default_factory=list)
    changed: list[Key] = field(default_factory=list)


# --- one schedule, by a person ----------------------------------------------------------------------------


@operation(repeatable=True)
def put_one(
    wanted: WantedRow, *, actor: str | None, take_over: bool = False
) -> Steps[tuple[Put, StandingRow | None]]:
    """Make or change a person's schedule; returns what came of it, and the row that stood there before.

    A row that code declared is changed only by a takeover: from then on it is a person's. May be repeated.

    Raises:
        FencerowError: its job names a limit that nobody defined. Nothing is stored.
    """
    yield from refuse_unknown_limits(sorted(wanted.definition.work.limits or ()))
    before = yield from locked(wanted.name, wanted.entity)
    put = yield from put_rows([wanted], RowOrigin.PERSON, "", actor, take_over)
    return put, before[0] if before else None


@operation(repeatable=True)
def remove(
    name: str, entity: str | None, *, declared: bool = False
) -> Steps[tuple[list[str], list[StandingRow]]]:
    """Remove a schedule with its entities, or one row: which entities went, and what stood there before.

    What code declares stays, unless `declared` says that it may go. May be repeated.
    """
    before = yield from locked(name, entity)
    if not declared and any(row.origin is RowOrigin.CODE and not row.undeclared for row in before):
        return [], before
    return first_column((yield from execute("remove_schedule", name=name, entity=entity))), before


@operation(repeatable=True)
def pause(name: str, entity: str | None, *, actor: str | None, reason: str | None) -> Steps[tuple[int, int]]:
    """Pause a schedule with its entities, or one row: how many were paused now, and how many rows there are."""
    before = yield from locked(name, entity)
    paused = yield from execute("pause_schedules", name=name, entity=entity, actor=actor, reason=reason)
    return len(paused), len(before)


@operation(repeatable=True)
def resume(name: str, entity: str | None) -> Steps[tuple[int, int]]:
    """Let a schedule with its entities fire again, or one row: how many were resumed, and how many rows there are.

    An entity that was paused by itself stays paused when all are resumed. What would have fired meanwhile is not made
    up. What is no longer declared was kept for its pause alone, and goes.
    """
    before = yield from locked(name, entity)
    rows = [
        {"entity": row.entity, "next_us": None if row.undeclared else row.next_us_of(name)}
        for row in before
        if row.paused and (entity is not None or row.paused_with_all or not row.entity)
    ]
    if not rows:
        return 0, len(before)
    document = msgspec.json.encode(rows).decode()
    gone = yield from execute("resume_undeclared", name=name, rows=document)
    resumed = yield from execute("resume_schedules", name=name, rows=document, zones=tzdata_version())
    return len(gone) + len(resumed), len(before)


# --- parts -------------------------------------------------------------------------------------------------


def locked(name: str, entity: str | None) -> Steps[list[StandingRow]]:
    """The rows of a schedule, or one of them, locked."""
    return [_standing(row) for row in (yield from execute("lock_schedules", name=name, entity=entity))]


def undeclare(name: str, entities: list[str] | None) -> Steps[tuple[list[str], list[str]]]:
    """These rows of a schedule, or all, are no longer declared: those that went, and those that stay, being paused."""
    if not (yield from execute("lock_undeclared", name=name, entities=entities)):
        return [], []
    removed = first_column((yield from execute("remove_undeclared", name=name, entities=entities)))
    return removed, first_column((yield from execute("keep_undeclared", name=name, entities=entities)))


def put_rows(
    rows: Sequence[WantedRow], origin: RowOrigin, owner: str, actor: str | None, take_over: bool = False
) -> Steps[Put]:
    """Make these rows, or change those that differ; so many in a statement, because the fires of each are computed."""
    if not rows:
        return Put()
    now_us = as_int((yield from execute("schedules_now"))[0][0])
    ordered = sorted(rows, key=lambda each: each.key)
    put = Put()
    for first in range(0, len(ordered), PUT_ROWS):
        part = [_document(each, now_us) for each in ordered[first : first + PUT_ROWS]]
        found = yield from execute(
            "put_schedules",
            rows=msgspec.json.encode(part).decode(),
            origin=origin.value,
            owner=owner,
            actor=actor,
            take_over=take_over,
            zones=tzdata_version(),
        )
        for name, entity, is_new in found:
            (put.made if is_new else put.changed).append((str(name), str(entity)))
    return put


def _document(wanted: WantedRow, now_us: int) -> dict[str, object]:
    seed = seed_of(wanted.name, wanted.entity)
    is_head = wanted.kind is RowKind.HEAD
    return {
        "name": wanted.name,
        "entity": wanted.entity,
        "kind": wanted.kind.value,
        "job": wanted.definition.job,
        "definition": wanted.text,
        "digest": wanted.digest,
        "next_us": None if is_head else known(wanted.text).spec.next_after(now_us, seed),
    }


def _standing(row: Row) -> StandingRow:
    (entity, kind, origin, text, digest, forgotten_us, next_us, paused, with_all, undeclared, now_us) = row
    return StandingRow(
        str(entity),
        RowKind(str(kind)),
        RowOrigin(str(origin)),
        str(text),
        str(digest),
        as_int_or_none(forgotten_us),
        as_int_or_none(next_us),
        bool(paused),
        bool(with_all),
        bool(undeclared),
        as_int(now_us),
    )
