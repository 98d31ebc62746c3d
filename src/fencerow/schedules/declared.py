"""Schedules declared in code, and the lists of entities that some of them follow."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencerow.core.app.calls import Call
from fencerow.core.app.submitter import Submittable, Submitter
from fencerow.core.errors import FencerowError, InvalidInput
from fencerow.core.model.signature import name_of
from fencerow.core.telemetry import clean
from fencerow.db.text import said_of, storable
from fencerow.schedules.definition import Definition, digest_of
from fencerow.schedules.definitions import RowKind, WantedRow
from fencerow.schedules.errors import InvalidEntities, NoEntities, ScheduleTaken, UnknownSchedule
from fencerow.schedules.following import Listing
from fencerow.schedules.options import SchedulePlan, When, check_entity, work_of

ENTITIES_MAX = 100_000
WHY_MAX = 200


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing that a schedule has a row for. By default its job is called with its name, at the schedule's times.

    `call`: what is submitted for it instead. `when`: when it fires instead.
    """

    name: str
    call: Call[Any] | None = None
    when: When | None = None


Listed = Iterable[str | Entity]
Entities = Callable[[], Listed] | Callable[[], Awaitable[Listed]]


@dataclass(frozen=True, slots=True)
class DeclaredSchedule:
    """One schedule that code declares. What it submits is made when it is asked for: the app's defaults may change."""

    name: str
    work: Submittable[Any, Any] | Call[Any]
    job: str
    plan: SchedulePlan
    entities: Entities | None
    submitter: Submitter

    @property
    def wanted(self) -> WantedRow:
        """Its own row."""
        kind = RowKind.SINGLE if self.entities is None else RowKind.HEAD
        return WantedRow(self.name, "", kind, self.definition)

    @property
    def definition(self) -> Definition:
        """What is stored for it. A head submits nothing itself, so it has no arguments."""
        if self.entities is not None and isinstance(self.work, Submittable):
            return self.plan.definition(work_of(self.submitter, self.work.call_later()))
        return self.plan.definition(work_of(self.submitter, self.work))

    @property
    def digest(self) -> str:
        """By which its row is known to be as this program declares it."""
        return digest_of(self.definition.text())

    async def listed(self) -> Listing:
        """The rows of its entities, as the user's function lists them now. It runs in a thread, or in the event loop.

        Entities that cannot be used are named, and the others are there.

        Raises:
            NoEntities: the list is empty. InvalidEntities: the function raised, or none of its members can be used.
        """
        members = await self._listed()
        if not members:
            raise NoEntities(
                f"{self._function} lists no entity for schedule {self.name}",
                "an empty list is mostly a mistake of its source, so no row was removed",
                f"if there is nothing left, take the declaration out, or `fencerow schedules pause {self.name}`",
            )
        return await asyncio.to_thread(self._read, members)  # ten thousand would hold the event loop

    @property
    def is_coroutine(self) -> bool:
        """Whether the user's function runs in the event loop, where it can be cancelled."""
        return inspect.iscoroutinefunction(self.entities)

    def late(self, after_s: float) -> InvalidEntities:
        """Why its entities stay as they are, where the function has not answered within this time."""
        return self._invalid(
            f"it has not returned within {after_s:g} s", "the list is expected within that time"
        )

    async def _listed(self) -> Sequence[str | Entity]:
        assert self.entities is not None, "it has no entities"
        try:
            if inspect.iscoroutinefunction(self.entities):
                found: Any = await self.entities()
            else:
                found = await asyncio.to_thread(self.entities)
            members = None if isinstance(found, str) else list(found)
        except Exception as error:
            raise self._invalid(f"it raised {said_of(error)}"[:300], "a list is expected") from error
        if members is None or len(members) > ENTITIES_MAX:
            raise self._invalid(
                "it returned one text, or too much", f"a list of at most {ENTITIES_MAX} is expected"
            )
        return members

    def _read(self, members: Sequence[object]) -> Listing:
        rows: dict[str, WantedRow] = {}
        invalid: dict[str, str] = {}
        nameless: list[str] = []
        for each in members:
            try:
                entity = _entity(each)
            except FencerowError as error:
                nameless.append(error.what)
                continue
            if entity.name in rows or entity.name in invalid:
                rows.pop(entity.name, None)  # nobody knows which of the two is meant
                invalid[entity.name] = "it is listed twice"
                continue
            try:
                rows[entity.name] = self._wanted_of(entity)
            except Exception as error:  # whatever is wrong with it, the others are listed
                invalid[entity.name] = _why(error)
        if not rows:
            raise self._invalid(
                f"none of its {len(members)} members can be used: {_first(invalid, nameless)}",
                "texts and Entity(...) are expected",
            )
        return Listing(list(rows.values()), invalid, nameless, self._trouble(len(members), invalid, nameless))

    def _wanted_of(self, entity: Entity) -> WantedRow:
        work = work_of(self.submitter, entity.call or self.work, entity.name)
        row = WantedRow(self.name, entity.name, RowKind.ENTITY, self.plan.at(entity.when).definition(work))
        _ = row.digest  # made here, in a thread, and not in the event loop
        return row

    def _trouble(self, members: int, invalid: Mapping[str, str], nameless: Sequence[str]) -> str | None:
        """What is said where some cannot be used."""
        bad = len(invalid) + len(nameless)
        if not bad:
            return None
        kept = "no row was removed" if nameless else "their rows stay as they are"
        more = f" and {bad - 1} more" if bad > 1 else ""
        return str(
            InvalidEntities(
                f"{self._function} lists for schedule {self.name} what cannot be used, {bad} of {members}: "
                f"{_first(invalid, nameless)}{more}",
                f"{kept}; the others are made",
                "correct the list",
            )
        )

    def _invalid(self, what: str, why: str) -> InvalidEntities:
        return InvalidEntities(
            f"{self._function} cannot be used for schedule {self.name}: {what}",
            why,
            "nothing was changed; correct the function",
        )

    @property
    def _function(self) -> str:
        assert self.entities is not None, "it has no entities"
        return name_of(self.entities)


def _entity(given: object) -> Entity:
    """Raises:
    FencerowError: it has no name that can be used.
    """
    entity = Entity(given) if isinstance(given, str) else given
    if not isinstance(entity, Entity):
        kind = type(given).__name__
        raise InvalidInput(f"a value of type {kind}, where texts and Entity(...) are expected")
    check_entity(entity.name)
    return entity


def _why(error: Exception) -> str:
    said = f"{error.what}; {error.why}" if isinstance(error, FencerowError) else said_of(error)
    return storable(clean(said))[:WHY_MAX]


def _first(invalid: Mapping[str, str], nameless: Sequence[str]) -> str:
    """One of them, to begin with."""
    return next((f"{name!r}: {why}" for name, why in invalid.items()), "") or nameless[0]


class Declarations:
    """The schedules that one app declares, by name."""

    def __init__(self) -> None:
        self.all: dict[str, DeclaredSchedule] = {}

    def add(self, declared: DeclaredSchedule) -> None:
        """Raises:
        ScheduleTaken: the name is declared already.
        """
        if declared.name in self.all:
            raise ScheduleTaken(
                f"two schedules are declared under the name {declared.name!r}",
                f"of the jobs {self.all[declared.name].job} and {declared.job}",
                "give one of them another name: app.schedule(..., name=...)",
            )
        self.all[declared.name] = declared

    def with_entities(self, name: str) -> DeclaredSchedule:
        """The declaration of this name that has entities.

        Raises:
            UnknownSchedule: there is none.
        """
        declared = self.all.get(name)
        if declared is None or declared.entities is None:
            known = ", ".join(sorted(key for key, each in self.all.items() if each.entities is not None))
            raise UnknownSchedule(
                f"this program declares no schedule {name!r} with entities",
                f"those with entities are {known}" if known else "none that it declares has entities",
                "name one of them",
            )
        return declared
