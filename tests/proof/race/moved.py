"""A user's table in the arenas of the races, and its moves as operations, with or without a guard."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import psycopg

from fencerow.core.store import store
from fencerow.core.store.running import HoldFence, Running
from fencerow.db.queries import Query
from fencerow.db.run import Operation, Steps, execute_composed
from fencerow.guards.transitions.asking import ask, ask_many, ask_renewal
from fencerow.guards.transitions.composing import Written
from fencerow.guards.transitions.facts import read_facts
from fencerow.guards.transitions.handing import HandedFence
from fencerow.guards.transitions.machine import Machine
from fencerow.guards.transitions.noting import Noting
from fencerow.guards.transitions.operations import Operations
from fencerow_proof.arena.actor import Script
from tests.guards.transitions.tables import EXTRACTIONS, TYPES, extractions
from tests.proof.race.people import JOB

NAME = "raced_extractions"
HELD = """
CREATE OR REPLACE TRIGGER race_hold BEFORE INSERT OR UPDATE OR DELETE ON fencerow.raced_extractions
    FOR EACH STATEMENT EXECUTE FUNCTION fencerow.hold_statement();
"""


class CutWritten(Written):
    """The statements with a guard taken out wherever it stands."""

    cuts: Sequence[tuple[str, str]] = ()
    met = 0

    def composed(self, name: str, text: str) -> Query:
        for old, new in self.cuts:
            self.met += old in text
            text = text.replace(old, new)
        return super().composed(name, text)


class Raced:
    """The table in one arena."""

    def __init__(self, arena: Any, *, history: bool = False) -> None:
        self._queries = arena.queries  # whole, and with a schema to rename to
        self.held = arena.mode == "held"
        sqlite = arena.mode == "sqlite"
        schema = "" if sqlite else "fencerow."
        made = extractions(None, schema + NAME, history=f"{schema}raced_moves" if history else None)
        self.declared = made.declared
        text = EXTRACTIONS.format(name=schema + NAME, **TYPES["sqlite" if sqlite else "postgres"])
        text += f";{made.history_sql(self._queries.dialect)}" if history else ";"
        text = text.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
        text = text.replace("CREATE INDEX", "CREATE INDEX IF NOT EXISTS")
        if sqlite:
            with closing(sqlite3.connect(arena.url)) as file, file:
                file.executescript(text)
        else:
            with psycopg.connect(arena.url) as connection:
                connection.execute("SET client_min_messages = error")
                connection.execute(text)
                if self.held:
                    connection.execute(HELD)
        self._facts = arena.run(read_facts(self.declared, self._queries))
        self.written: CutWritten = self.whole()

    def whole(self) -> CutWritten:
        """The statements as they are."""
        self.written = CutWritten(self.declared, self._facts, self._queries)
        return self.written

    def without(self, *cuts: tuple[str, str]) -> CutWritten:
        """The statements without these guards, from now on."""
        self.whole().cuts = cuts
        return self.written

    # --- what actors do --------------------------------------------------------------------------

    def move(self, name: str, row_id: str = "a", *, sub: str = "", **given: Any) -> Operation[Any]:
        asked = ask(
            self.machine(sub), name, row_id, **{"fence": None, "values": None, "params": None, **given}
        )
        return self._operations().move(self.machine(sub), asked)

    def move_in_job(
        self, name: str, *, holder: str, attempt: int, fence: HoldFence = store.hold_fence
    ) -> Operation[Any]:
        """On behalf of an attempt of JOB."""
        asked = ask(self.machine(""), name, "a", fence=None, values=None, params=None)
        made_by = Running(JOB, "send", "mail", holder, attempt, 0, fence)
        return Operations(self.written, Noting(self.written, None), made_by).move(self.machine(""), asked)

    def claim_by(self, attempt: int, job_id: str = JOB) -> Operation[Any]:
        """The claim of a row by an attempt of a job, whose next attempt it is left to."""
        asked = ask(self.machine(""), "claim", "a", fence=None, values=None, params=None)
        made_by = Running(job_id, "send", "mail", job_id, attempt, 0, store.hold_fence)
        handover = HandedFence(self.declared, self.written.queries, made_by)
        return Operations(self.written, Noting(self.written, None), None, handover).move(
            self.machine(""), asked
        )

    def why(self, name: str, row_id: str = "a", **given: Any) -> Operation[Any]:
        asked = ask(
            self.machine(""), name, row_id, **{"fence": None, "values": None, "params": None, **given}
        )
        return self._operations().move_or_why(self.machine(""), asked)

    def take(self, name: str, count: int, *, sub: str = "") -> Operation[Any]:
        asked = ask_many(self.machine(sub), name, values=None, params=None)
        return self._operations().take(self.machine(sub), asked, count)

    def renew(self, fence: int, row_id: str = "a") -> Operation[Any]:
        asked = ask_renewal(self.machine(""), "claim", row_id, fence=fence, values=None)
        return self._operations().renew(self.machine(""), asked)

    def reap(self, *, sub: str = "boxes") -> Operation[Any]:
        return self._operations().reap(self.machine(sub), 10)

    def read(self, row_id: str = "a") -> Operation[Any]:
        return self._operations().read(row_id)

    def machine(self, sub: str) -> Machine:
        return self.declared.subs[sub] if sub else self.declared.main

    def told(self) -> Operation[Any]:
        """The moves in the history, as (move, source, target)."""
        assert self.declared.history is not None
        query = self._queries.composed(
            "told", f"SELECT * FROM {self.declared.history.quoted} ORDER BY moved_at"
        )

        def steps() -> Steps[list[tuple[str, str, str]]]:
            rows = yield from execute_composed(query, {})
            return [(row["move"], row["source"], row["target"]) for row in rows]

        return Operation("told", steps, writes="")

    # --- what was before -------------------------------------------------------------------------

    def rows(self, *ids: str, **columns: str) -> Operation[Any]:
        """These rows and no others."""
        given = {"status": "queued", **columns}
        values = ", ".join(
            "(" + ", ".join(f"'{value}'" for value in [row_id, *given.values()]) + ")" for row_id in ids
        )
        names = ", ".join(["id", *given])
        table, history = self.declared.table.quoted, self.declared.history
        text = f"DELETE FROM {table}; INSERT INTO {table} ({names}) VALUES {values}"
        text = f"DELETE FROM {history.quoted}; {text}" if history else text
        query = self._queries.composed("rows", text)

        def steps() -> Steps[None]:
            yield from execute_composed(query, {})

        return Operation("rows", steps)

    def prepared(self, *operations: Operation[Any], **columns: str) -> Callable[[], Script]:
        """A row, and what happened to it before the race."""

        def script() -> Script:
            yield self.rows("a", **columns)
            for operation in operations:  # noqa: UP028 (a tuple's iterator takes no answers)
                yield operation

        return script

    def _operations(self) -> Operations:
        return Operations(self.written, Noting(self.written, None))
