"""`Transitions`: the states of a user's own table and the moves between them, declared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencerow.core.answering import answer
from fencerow.core.locator import Locator
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.verb import averb, verb
from fencerow.guards.names import table_name
from fencerow.guards.transitions.ddl import constraint_sql, history_sql
from fencerow.guards.transitions.declaring import Move, Names, Overdue, SubState, listed
from fencerow.guards.transitions.diagram import diagram
from fencerow.guards.transitions.errors import MovesMisdeclared
from fencerow.guards.transitions.machine import DeclaredTable, unknown
from fencerow.guards.transitions.noting import Publisher
from fencerow.guards.transitions.procedures import MoveProcedures
from fencerow.guards.transitions.reaper import Reaper
from fencerow.guards.transitions.trigger import trigger_sql
from fencerow.guards.transitions.validating import machine, once, sub_machine, validate
from fencerow.guards.transitions.verbs import MANY, Moves, positive
from fencerow.located import LocatorProcedure


@answer
class Transitions(Moves):
    """Legal moves on a table of the user's own: each is one guarded UPDATE that returns the row, or None.

        documents = Transitions(app, table="documents", column="status",
                                states=["pending", "processing", "ready"],
                                moves=[Move("start", "pending", "processing"),
                                       Move("finish", "processing", "ready", stamps="ready_at")])
        row = documents.move("start", document_id)      # None: somebody else did, or there is nothing to do

    `order` are the columns by which `take` chooses rows. `version` is a whole number that every move raises
    by one: with it the trigger can tell a move from any other write. `history` is a table of yours that gets
    a row for each move; `publisher` gets each move, see `MoveEvents`. Both commit with the move.

    `by_attempt`: inside a job, each move locks the job's row first, and an attempt that no longer holds its
    job gets LeaseLost. You do not need this if every move has a fence of its own.

    Nothing is sent before the first use, which looks at the table once.

    Raises:
        MovesMisdeclared: the declaration cannot work; the message says what and where.
    """

    def __init__(
        self,
        place: Locator,
        *,
        table: str,
        column: str,
        states: Sequence[str],
        moves: Sequence[Move],
        id: str = "id",  # noqa: A002 (the word of the table)
        overdue: Sequence[Overdue] = (),
        sub_states: Sequence[SubState] = (),
        order: Names = (),
        version: str | None = None,
        history: str | None = None,
        publisher: Publisher | None = None,
        by_attempt: bool = False,
    ) -> None:
        once("sub-state", [sub.name for sub in sub_states])
        self.declared = DeclaredTable(
            table_name(table, MovesMisdeclared),
            id,
            machine("", column, states, moves, overdue),
            {sub.name: sub_machine(sub) for sub in sub_states},
            listed(order),
            version,
            None if history is None else table_name(history, MovesMisdeclared),
        )
        validate(self.declared)
        self._procedures = procedures = MoveProcedures(place, self.declared, publisher, by_attempt=by_attempt)
        super().__init__(procedures, self.declared.main)
        self._subs: Mapping[str, Moves] = {
            name: Moves(procedures, sub) for name, sub in self.declared.subs.items()
        }

    def sub(self, name: str) -> Moves:
        """The moves of a sub-state, with the same verbs.

        Raises:
            UnknownMove: no sub-state has that name.
        """
        if name not in self._subs:
            raise unknown("sub-state", name, self._subs, "")
        return self._subs[name]

    # --- from the same declaration ---------------------------------------------------------------

    @verb
    def check(self) -> LocatorProcedure[None]:
        """Look at the table, and have the database explain every statement without running it.

        The first use checks only the columns. This also finds what is wrong with a condition, a type or a
        grant. Call it in a test, or when the program starts.

        Raises:
            WrongTable: the database would refuse some statement; the message says which, and in its words why.
        """
        return (yield from self._procedures.checking())

    acheck = averb(check)

    def reaper(self, *, every_s: Seconds = 15.0, count: int = MANY) -> Reaper:
        """A chore that sweeps this table and its sub-states: `app.add_chore(documents.reaper())`.

        Raises:
            MovesMisdeclared: no lease and no `overdue` names a move for the reaper.
        """
        positive(count)
        swept = [moves for moves in (self, *self._subs.values()) if moves.is_reaped]
        if not swept:
            raise MovesMisdeclared(
                f"there is nothing for a reaper of {self.declared.table} to do",
                "no lease has when_stale or when_spent, and no overdue a move",
                "declare one of them",
            )
        return Reaper(str(self.declared.table), swept, in_seconds(every_s), count)

    def constraint_sql(self, dialect: str | None = None) -> str:
        """The CHECK constraints: statements for PostgreSQL, for SQLite the clauses of a CREATE TABLE."""
        return constraint_sql(self.declared, self._dialect(dialect))

    def trigger_sql(self, dialect: str | None = None) -> str:
        """A trigger, for your migration, that refuses all writes but the moves. It is strictest with `version`."""
        return trigger_sql(self.declared, self._dialect(dialect))

    def history_sql(self, dialect: str | None = None, *, id_type: str = "text") -> str:
        """The table of the history, with the type that the ids have.

        Raises:
            MovesMisdeclared: no history is declared.
        """
        if self.declared.history is None:
            raise MovesMisdeclared("no history is declared", "it has no name", "pass history= to Transitions")
        return history_sql(self.declared.history, self._dialect(dialect), id_type)

    def diagram(self) -> str:
        """The states and moves as a Mermaid diagram."""
        return diagram(self.declared)

    def _dialect(self, dialect: str | None) -> str:
        return dialect or self._procedures.place.engine.dialect
