"""An actor on its own PostgreSQL connection: one step at a time, and nothing waited for."""

from __future__ import annotations

from typing import Protocol

import psycopg

from fencerow.db.faults import CONTENTION
from fencerow.db.queries import Query
from fencerow.db.statement import Rows, Statement
from fencerow.testing.actor import Course
from fencerow.testing.race import Story
from fencerow.testing.reduction import Reduction, may_write
from fencerow.testing.wire import Wire

RESTARTS_MAX = 5


class Ground(Protocol):
    """What a player needs of its arena."""

    def shut(self, gate: int) -> None:
        """Hold the next statement of this gate's actor that changes data."""

    def open(self, gate: int) -> None:
        """Let it go on."""

    def query(self, statement: Statement) -> Query:
        """The text of a statement."""
        ...


class Player:
    """An actor on its connection."""

    def __init__(self, course: Course, wire: Wire, gate: int, arena: Ground, reduction: Reduction) -> None:
        self.course = course
        self.wire = wire
        self.gate = gate
        self.held = False
        self.ends = 0  # transactions that ended since somebody looked
        self._arena = arena
        self._reduction = reduction
        self._doing = ""
        self._shut = False
        self._broken = False

    @property
    def name(self) -> str:
        return self.course.actor.name

    @property
    def may_go(self) -> bool:
        return not self.course.done and (not self.wire.busy or self.held)

    def go(self, story: Story) -> None:
        """Take one step: send the next statement or the transaction's end, or go on with a held one."""
        if self.wire.busy:
            story.tell(self.name, f"{self._doing}, held until now, goes on")
            self._reduction.steps(self.name, "goes on", self._pending())
            self.held = self._shut = False
            self._arena.open(self.gate)
        elif self.course.pending is None:
            self._doing = "ROLLBACK" if self.course.aborts else "COMMIT"
            self._reduction.steps(self.name, self._doing, None)
            self.wire.begin(self._doing)
        else:
            self._send(self.course.pending)

    def take_reply(self, story: Story) -> None:
        """Go on with the reply that is there, up to the next step."""
        self.held = False
        statement = self.course.pending
        try:
            rows = self.wire.wait()
        except psycopg.Error as error:
            story.tell(self.name, f"{self._doing} → {type(error).__name__}")
            self._reduction.steps(self.name, type(error).__name__, None)
            self._reduction.ended(self.name, committed=False)
            self._refused(error)
            return
        story.tell(self.name, f"{self._doing} → {_shown(rows)}" if statement else self._doing)
        if statement is None or not self.course.begun:
            self.ends += 1
        if statement is None:
            self._reduction.ended(self.name, committed=self._doing == "COMMIT")
            self.course.ended()
        else:
            query = self._arena.query(statement)
            wrote, commits = may_write(query, rows), not self.course.begun
            self._reduction.answered(self.name, query, str(rows), wrote=wrote, commits=commits)
            self.course.answered(rows)

    def abandon(self) -> None:
        """Leave everything as it was before the play."""
        self.wire.rest()
        if self.course.begun:
            self.wire.run("ROLLBACK")

    def break_ring(self) -> None:
        self._broken = True
        self.wire.cancel()

    def _send(self, statement: Statement) -> None:
        operation = self.course.operation
        assert operation is not None
        if not operation.alone and not self.course.begun:
            self.wire.run("BEGIN")
            self.course.begun = True
        if not self._shut:
            self._arena.shut(self.gate)
            self._shut = True
        self._doing = statement.name
        self._reduction.steps(self.name, statement.name, self._pending())
        self.wire.start(self._arena.query(statement), statement.params)

    def _pending(self) -> Query | None:
        return None if self.course.pending is None else self._arena.query(self.course.pending)

    def _refused(self, error: psycopg.Error) -> None:
        if self.course.begun:
            self.wire.run("ROLLBACK")
        lost = isinstance(error, CONTENTION) or self._broken
        self._broken = False
        if lost and self.course.restarts < RESTARTS_MAX:
            self.course.restart()
        else:
            self.course.failed(error)


def _shown(rows: Rows) -> str:
    text = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in rows)
    return text if len(text) < 160 else text[:157] + "…"
