"""A list of entities, read part by part. However long it is, nothing that is kept of it holds an event loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from fencerow.core.app.calls import Call
from fencerow.core.errors import FencerowError, InvalidInput
from fencerow.db.text import clean, said_of, storable
from fencerow.schedules.definitions import WantedRow
from fencerow.schedules.options import When, check_entity

ENTITIES_MAX = 100_000
PART_MEMBERS = 500
WHY_MAX = 200


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing that a schedule has a row for. By default its job is called with its name, at the schedule's times.

    `call`: what is submitted for it instead. `when`: when it fires instead.
    """

    name: str
    call: Call[Any] | None = None
    when: When | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a function listed: the row of each entity, by its name.

    `invalid`: entities that cannot be used, by name, and why; their rows stay as they are. `nameless`: members of which
    not even the name can be read. Each may stand for any row, so none is removed then. `trouble`: what is wrong with
    the list, for people.
    """

    rows: dict[str, WantedRow]
    invalid: dict[str, str] = field(default_factory=dict)
    nameless: list[str] = field(default_factory=list)
    trouble: str | None = None

    def let_go(self) -> None:
        """Give its memory back, in a thread: all at once, that of a hundred thousand rows takes 20 ms."""
        while self.rows:
            self.rows.popitem()


class ListReading:
    """What is read of a list, member by member; whatever is wrong with one, the others are read.

    `row_of`: makes the row of an entity. `is_unfit`: it is a text, or longer than a list may be.
    """

    def __init__(self, row_of: Callable[[Entity], WantedRow]) -> None:
        self._row_of = row_of
        self.rows: dict[str, WantedRow] = {}
        self.invalid: dict[str, str] = {}
        self.nameless: list[str] = []
        self.members = 0
        self.is_unfit = False

    @property
    def bad(self) -> int:
        """How many members cannot be used."""
        return len(self.invalid) + len(self.nameless)

    @property
    def first(self) -> str:
        """What is wrong with one of them."""
        return next((f"{name!r}: {why}" for name, why in self.invalid.items()), "") or self.nameless[0]

    def read(self, function: Callable[[], Any]) -> None:
        """Call it, and read what it lists. It may list as it goes: of no more than a part anything is kept."""
        for part in self.parts(function()):
            self.add(part)

    def parts(self, found: Iterable[object]) -> Iterator[list[object]]:
        """Its members, so many at once. Nobody asks for more than a list may have."""
        self.is_unfit = isinstance(found, str)
        if isinstance(found, Collection) and not self.is_unfit:
            # As it is now: its owner may change it between two parts, and who is passed over then would lose its row.
            found = list(islice(found, ENTITIES_MAX + 1))
        members = iter(() if self.is_unfit else found)
        while part := list(islice(members, PART_MEMBERS)):
            self.members += len(part)
            if self.members > ENTITIES_MAX:
                self.is_unfit = True
                return
            yield part

    def add(self, part: list[object]) -> None:
        """Read these."""
        for each in part:
            try:
                entity = entity_of(each)
            except FencerowError as error:
                self.nameless.append(error.what)
                continue
            if entity.name in self.rows or entity.name in self.invalid:
                self.rows.pop(entity.name, None)  # nobody knows which of the two is meant
                self.invalid[entity.name] = "it is listed twice"
                continue
            try:
                self.rows[entity.name] = self._row_of(entity)
            except Exception as error:  # whatever is wrong with it, the others are listed
                self.invalid[entity.name] = _why(error)


def entity_of(given: object) -> Entity:
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
