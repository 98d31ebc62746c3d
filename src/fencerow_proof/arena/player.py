"""An actor on its own PostgreSQL connection: one step at a time, and nothing waited for."""

from __future__ import annotations

from typing import Protocol

import psycopg

from fencerow.db.faults import CONTENTION
from fencerow.db.queries import Query
from fencerow.db.run import Rows, Statement
from fencerow_proof.arena.actor import Course
from fencerow_proof.arena.invariants import would_show
from fencerow_proof.arena.race import Story
from fencerow_proof.arena.reduction import Reduction, may_write
from fencerow_proof.arena.wire import Wire

RESTARTS_MAX = 5


class Gates(Protocol):
    """What a player needs of its arena."""

    def shut(self, gate: int) -> None:
        """Hold the next statement of this gate's actor that changes data; it is shut already when a play begins."""

    def open(self, gate: int) -> None:
        """Let it go on."""

    def query(self, statement: Statement) -> Query:
        """The text of a statement."""
        ...


class Player:
    """An actor on its connection."""

    def __init__(self, course: Course, wire: Wire, gate: int, arena: Gates, reduction: Reduction) -> None:
        self.course = course
        self.wire = wire
        self.gate = gate
        self.held = False
        self.waits = False  # for another's lock, as the server said; until somebody lets go of one
        self.freed = False  # it let go of its locks in this step
        self.ends = 0  # transactions that changed jobs and ended since somebody looked
        self._arena = arena
        self._reduction = reduction
        self._doing = ""
        self._opened = False
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
            self._reduction.goes_on(self.name, self._pending())
            self.held = self.wire.at_gate = False
            self._opened = True
            self._arena.open(self.gate)
        elif self.course.pending is None:
            self._doing = "ROLLBACK" if self.course.aborts else "COMMIT"
            self._reduction.steps(self.name, self._doing, None)
            self.wire.begin(self._doing)
        else:
            self._send(self.course.pending)

    def take_reply(self, story: Story) -> None:
        """Go on with the reply that is there, up to the next step."""
        self.held = self.waits = False
        statement = self.course.pending
        try:
            rows = self.wire.wait()
        except psycopg.Error as error:
            story.tell(self.name, f"{self._doing} → {type(error).__name__}")
            query = None if statement is None else self._arena.query(statement)
            self._reduction.refused(self.name, type(error).__name__, query)
            self._refused(error)
            return
        story.tell(self.name, f"{self._doing} → {_shown(rows)}" if statement else self._doing)
        ends = statement is None or not self.course.begun
        if statement is not None:
            query = self._arena.query(statement)
            self._reduction.answered(
                self.name, query, str(rows), wrote=may_write(query, rows), alone=not self.course.begun
            )
        if ends:
            self.freed = True
            wrote = self._reduction.ended(self.name, committed=self._doing != "ROLLBACK")
            self.ends += would_show(wrote)
        if statement is None:
            self.course.ended()
        else:
            self.course.answered(rows)

    def note_rest(self) -> None:
        """After a step: a statement under way stands at its gate, or waits for another's lock."""
        query = None if self.course.pending is None else self._pending()
        if self.held and query is not None:
            self._reduction.held(self.name, query, locks=self.wire.locks_there)
        elif self.wire.busy:
            self._reduction.waits(self.name, query)

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
        if self._opened:
            self._arena.shut(self.gate)
            self._opened = False
        begin = not operation.alone and not self.course.begun
        self._doing = statement.name
        query = self._arena.query(statement)
        self._reduction.steps(self.name, statement.name, query)
        self.wire.start(query, statement.params, begin=begin)
        self.course.begun = self.course.begun or begin

    def _pending(self) -> Query:
        assert self.course.pending is not None
        return self._arena.query(self.course.pending)

    def _refused(self, error: psycopg.Error) -> None:
        self.freed = True
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
