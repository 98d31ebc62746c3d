"""Schedules declared in code, and the lists of entities that some of them follow."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fencerow.core.app.calls import Call
from fencerow.core.app.submitter import Submittable, Submitter
from fencerow.core.model.signature import name_of
from fencerow.db.text import said_of
from fencerow.schedules.definition import Definition, digest_of
from fencerow.schedules.definitions import RowKind, WantedRow, wanted_row
from fencerow.schedules.errors import InvalidEntities, NoEntities, ScheduleTaken, UnknownSchedule
from fencerow.schedules.listing import ENTITIES_MAX, Entity, Listing, ListReading
from fencerow.schedules.options import SchedulePlan, work_of

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
        return wanted_row(self.name, "", kind, self.definition)

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
        function: Any = self.entities
        reading = ListReading(self._wanted_of)
        try:
            if self.is_coroutine:  # it lists in the loop where it ran; what comes of it is made in threads
                for part in reading.parts(await function()):
                    await asyncio.to_thread(reading.add, part)
            else:
                await asyncio.to_thread(reading.read, function)
        except Exception as error:
            raise self._invalid(f"it raised {said_of(error)}"[:300], "a list is expected") from error
        self._refuse_unusable(reading)
        return Listing(reading.rows, reading.invalid, reading.nameless, self._trouble(reading))

    @property
    def is_coroutine(self) -> bool:
        """Whether the user's function runs in the event loop, where it can be cancelled."""
        return inspect.iscoroutinefunction(self.entities)

    def late(self, after_s: float) -> InvalidEntities:
        """Why its entities stay as they are, where the function has not answered within this time."""
        return self._invalid(
            f"it has not returned within {after_s:g} s", "the list is expected within that time"
        )

    def _refuse_unusable(self, reading: ListReading) -> None:
        if reading.is_unfit:
            raise self._invalid(
                "it returned one text, or too much", f"a list of at most {ENTITIES_MAX} is expected"
            )
        if not reading.members:
            raise NoEntities(
                f"{self._function} lists no entity for schedule {self.name}",
                "an empty list is mostly a mistake of its source, so no row was removed",
                f"if there is nothing left, take the declaration out, or `fencerow schedules pause {self.name}`",
            )
        if not reading.rows:
            raise self._invalid(
                f"none of its {reading.members} members can be used: {reading.first}",
                "texts and Entity(...) are expected",
            )

    def _wanted_of(self, entity: Entity) -> WantedRow:
        work = work_of(self.submitter, entity.call or self.work, entity.name)
        return wanted_row(self.name, entity.name, RowKind.ENTITY, self.plan.at(entity.when).definition(work))

    def _trouble(self, reading: ListReading) -> str | None:
        """What is said where some cannot be used."""
        if not reading.bad:
            return None
        kept = "no row was removed" if reading.nameless else "their rows stay as they are"
        more = f" and {reading.bad - 1} more" if reading.bad > 1 else ""
        return str(
            InvalidEntities(
                f"{self._function} lists for schedule {self.name} what cannot be used, {reading.bad} of "
                f"{reading.members}: {reading.first}{more}",
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
