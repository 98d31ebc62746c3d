"""The procedures of one declaration: its operations, after a look at the table before the first of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from fencerow.core.errors import SchemaMissing, SchemaTooOld
from fencerow.core.locator import Locator
from fencerow.db.run import Operation, WakeUp
from fencerow.guards.lent import running_on
from fencerow.guards.transitions.checking import as_wrong_table, explained
from fencerow.guards.transitions.composing import Written
from fencerow.guards.transitions.errors import WrongTable
from fencerow.guards.transitions.facts import Facts, read_facts
from fencerow.guards.transitions.handing import HandedFence
from fencerow.guards.transitions.machine import DeclaredTable
from fencerow.guards.transitions.noting import Noting, Publisher
from fencerow.guards.transitions.operations import Operations
from fencerow.located import CheckTables, LocatorProcedure

T = TypeVar("T")

Make = Callable[[Operations], Operation[T]]


class MoveProcedures:
    """One declaration in one place."""

    def __init__(
        self, place: Locator, declared: DeclaredTable, publisher: Publisher | None, *, by_attempt: bool
    ) -> None:
        self.place = place
        self.declared = declared
        self._publisher = publisher
        self._by_attempt = by_attempt
        self._ready: Written | None = None

    def making(self, make: Make[T], connection: object | None) -> LocatorProcedure[T]:
        """Run an operation; `connection`: the lent one, if there is one."""
        written = self._ready or (yield from self.looking())
        operation = make(self.operations(written, connection))
        with self._told():
            answer: T = yield operation
        if self._publisher is not None and connection is None and answer:
            yield WakeUp(self._publisher.wake_ups())  # unless it is the user who commits
        return answer

    def operations(self, written: Written, connection: object | None = None) -> Operations:
        """The operations as this code makes them: a job's handler on behalf of its attempt, where that is declared."""
        attempt = running_on(connection)
        handover = None
        if attempt is not None and written.hands_over:
            handover = HandedFence(self.declared, self.place.engine.queries, attempt)
        noting = Noting(written, self._publisher)
        return Operations(written, noting, attempt if self._by_attempt else None, handover)

    def looking(self) -> LocatorProcedure[Written]:
        """See that the table fits. On the lent connection: its transaction may have made the table.

        Raises:
            WrongTable: it does not. SchemaMissing: PostgreSQL has no Fencerow tables, and so no clock of ours.
        """
        if self._needs_schema:
            yield CheckTables()
        queries = self.place.engine.queries
        facts: Facts = yield read_facts(self.declared, queries)
        self._ready = Written(self.declared, facts, queries)
        return self._ready

    def checking(self) -> LocatorProcedure[None]:
        """See that the table fits, and that the database takes every statement."""
        written = yield from self.looking()
        for told, operation in explained(written, self.operations(written)):
            with as_wrong_table(str(self.declared.table), told):
                yield operation

    @property
    def _needs_schema(self) -> bool:
        """Events need tables of ours, and so does a clock that does not come with the connection."""
        return not self.place.engine.traits.brings_clock or self._publisher is not None

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What a missing table or column means when it is the user's."""
        try:
            yield
        except (SchemaMissing, SchemaTooOld) as error:
            self._ready = None  # the next use looks again
            raise WrongTable(
                f"the database refuses the statement for table {self.declared.table}",
                error.why,
                "compare the table and the values with the declaration; check() shows more",
            ) from error
