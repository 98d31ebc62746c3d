"""Rows of schedules made, changed, removed, paused and resumed. Each operation locks what it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import msgspec

from fencerow.calendar.zones import tzdata_version
from fencerow.db.run import Param, Row, Steps, as_int, as_int_or_none, execute, first_column, operation
from fencerow.schedules.definition import Definition, digest_of, known, seed_of
from fencerow.schedules.ticking import Key
from fencerow.turns.limiting import refuse_unknown_limits

T = TypeVar("T")

PUT_ROWS = 200  # meanwhile nothing else runs in the event loop
READ_ROWS = 1000  # neither does it while so many rows are fetched, or so many names are sent


class RowKind(StrEnum):
    """A schedule by itself, one that stands for its entities, or an entity."""

    SINGLE = "single"
    HEAD = "head"
    ENTITY = "entity"


class RowOrigin(StrEnum):
    """Who made a row."""

    CODE = "code"
    PERSON = "person"


class WantedRow(msgspec.Struct, frozen=True, gc=False):
    """A row as it should be. It holds texts alone: of a hundred thousand, the garbage collector looks at none, and
    whatever it looks at holds the event loop."""

    name: str
    entity: str
    kind: RowKind
    job: str
    text: str  # the definition as it is stored

    @property
    def definition(self) -> Definition:
        """As it can be read back."""
        return known(self.text).definition

    @property
    def digest(self) -> str:
        """By which it is compared with what stands there."""
        return digest_of(self.text)


def wanted_row(name: str, entity: str, kind: RowKind, definition: Definition) -> WantedRow:
    """The row of a schedule, or of one of its entities."""
    return WantedRow(name, entity, kind, definition.job, definition.text())


class StandingRow(msgspec.Struct, frozen=True, gc=False):
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


class _NextFire(msgspec.Struct, frozen=True, gc=False):
    """When a row that was paused fires again; None for a head, and for what nobody declares."""

    entity: str
    next_us: int | None


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
def remove(name: str, entity: str | None) -> Steps[tuple[int, bool, bool]]:
    """Remove a schedule with its entities, or one row. May be repeated.

    Returns how many rows went, whether there was any, and whether code declares one of them. Then none goes.
    """
    before = yield from locked(name, entity)
    if any(row.origin is RowOrigin.CODE and not row.undeclared for row in before):
        return 0, True, True
    for part in parts(before):
        yield from execute("remove_schedule", name=name, entity=entity, entities=[row.entity for row in part])
    return len(before), bool(before), False


@operation(repeatable=True)
def pause(name: str, entity: str | None, *, actor: str | None, reason: str | None) -> Steps[tuple[int, int]]:
    """Pause a schedule with its entities, or one row: how many were paused now, and how many rows there are."""
    before = yield from _by_pages("lock_schedules", _entity, name=name, entity=entity)
    paused = 0
    for part in parts(before):
        rows = yield from execute(
            "pause_schedules", name=name, entity=entity, entities=list(part), actor=actor, reason=reason
        )
        paused += len(rows)
    return paused, len(before)


@operation(repeatable=True, computes=True)
def resume(name: str, entity: str | None) -> Steps[tuple[int, int]]:
    """Let a schedule with its entities fire again, or one row: how many were resumed, and how many rows there are.

    An entity that was paused by itself stays paused when all are resumed. What would have fired meanwhile is not made
    up. What is no longer declared was kept for its pause alone, and goes.
    """

    def fire_of(found: Row) -> _NextFire | None:
        row = _standing(found)
        if not row.paused or not (entity is not None or row.paused_with_all or not row.entity):
            return None
        return _NextFire(row.entity, None if row.undeclared else row.next_us_of(name))

    before = yield from _by_pages("lock_schedules", fire_of, name=name, entity=entity)
    resumed = 0
    for part in parts([each for each in before if each is not None]):
        resumed += yield from _resumed(name, part)
    return resumed, len(before)


# --- parts -------------------------------------------------------------------------------------------------


def locked(name: str, entity: str | None) -> Steps[list[StandingRow]]:
    """The rows of a schedule, or one of them, locked.

    The row of a schedule comes before those of its entities. Whoever locks several of them has it first.
    """
    return (yield from _by_pages("lock_schedules", _standing, name=name, entity=entity))


def undeclare(name: str, after: str | None = None) -> Steps[tuple[list[str], list[str]]]:
    """A schedule is no longer declared, with its entities; or these alone, where `after` is "".

    Returns the entities of those rows that went, and of those that stay, being paused.
    """
    found = yield from _by_pages("find_undeclared", _entity, after=after, name=name)
    return (yield from undeclare_these(name, found))


def undeclare_these(name: str, entities: Sequence[str]) -> Steps[tuple[list[str], list[str]]]:
    """The same for these rows of a schedule."""
    removed: list[str] = []
    kept: list[str] = []
    for each in parts(entities):
        part = list(each)
        if (yield from execute("lock_undeclared", name=name, entities=part)):
            removed += first_column((yield from execute("remove_undeclared", name=name, entities=part)))
            kept += first_column((yield from execute("keep_undeclared", name=name, entities=part)))
    return removed, kept


def parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """So many of them at once."""
    return (rows[first : first + READ_ROWS] for first in range(0, len(rows), READ_ROWS))


def put_rows(
    rows: Sequence[WantedRow], origin: RowOrigin, owner: str, actor: str | None, take_over: bool = False
) -> Steps[Put]:
    """Make these rows, or change those that differ; so many in a statement, because the fires of each are computed.

    Whoever puts several has locked their head, or holds the lock of all that reconcile.
    """
    if not rows:
        return Put()
    now_us = as_int((yield from execute("schedules_now"))[0][0])
    put = Put()
    for first in range(0, len(rows), PUT_ROWS):
        part = [_document(each, now_us) for each in rows[first : first + PUT_ROWS]]
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


def _by_pages(
    query: str, of: Callable[[Row], T], *, after: str | None = None, **params: Param
) -> Steps[list[T]]:
    """What a query finds in the order of the entities, so many at once; those behind `after`, or all if it is None.

    Of each row is kept what `of` makes of it. That is done page by page: the event loop goes on between them.
    """
    found: list[T] = []
    while page := (yield from execute(query, after=after, limit=READ_ROWS, **params)):
        found += map(of, page)
        if len(page) < READ_ROWS:
            break
        after = _entity(page[-1])
    return found


def _resumed(name: str, rows: Sequence[_NextFire]) -> Steps[int]:
    document = msgspec.json.encode(rows).decode()
    gone = yield from execute("resume_undeclared", name=name, rows=document)
    resumed = yield from execute("resume_schedules", name=name, rows=document, zones=tzdata_version())
    return len(gone) + len(resumed)


def _document(wanted: WantedRow, now_us: int) -> dict[str, object]:
    seed = seed_of(wanted.name, wanted.entity)
    is_head = wanted.kind is RowKind.HEAD
    return {
        "name": wanted.name,
        "entity": wanted.entity,
        "kind": wanted.kind.value,
        "job": wanted.job,
        "definition": wanted.text,
        "digest": wanted.digest,
        "next_us": None if is_head else known(wanted.text).spec.next_after(now_us, seed),
    }


def _entity(row: Row) -> str:
    return str(row[0])


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
