"""Races on SQLite: one writer at a time, so the orders to play are those of whole transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from fencerow.db.queries import Queries, Query, qualified
from fencerow.db.queries import sqlite_names as names
from fencerow.db.run import Operation, Steps, execute
from fencerow.db.sqlite import SqliteEngine
from fencerow_proof.arena.actor import Actor, Script
from fencerow_proof.arena.crash import Point, ending
from fencerow_proof.arena.held import OF_SERVERS, TABLES
from fencerow_proof.arena.invariants import SNAPSHOT, History, together, would_show
from fencerow_proof.arena.race import Scenario, Story
from fencerow_proof.explorer.footprint import CLOCK, NOTHING, Footprint, footprint_of
from fencerow_proof.explorer.orders import Choose
from fencerow_proof.explorer.playing import play

T = TypeVar("T")


class SqliteArena:
    """A file in which scenarios are played; its schema is migrated already."""

    mode = "sqlite"

    def __init__(self, path: Path, queries: Queries, *, prefix: str = "fencerow_") -> None:
        self._path = path
        self._prefix = prefix
        self._rename = names(prefix)
        self.queries = queries
        self._played = queries
        self._engine = self._open()
        self._watches = [sqlite3.connect(file) for file in (path, f"{path}-workers")]

    @property
    def url(self) -> str:
        """Where another process finds the file."""
        return str(self._path)

    @property
    def offset_us(self) -> int:
        """How far the clock of this process is ahead; another process must be told."""
        return self._engine.clock.offset_us

    def close(self) -> None:
        for watch in self._watches:
            watch.close()
        self._engine.close()

    def version(self) -> list[int]:
        """Other numbers after a transaction that changed something in one of the files."""
        return [int(watch.execute("PRAGMA data_version").fetchone()[0]) for watch in self._watches]

    def fresh(self, scenario: Scenario) -> None:  # noqa: ARG002 (what a server would be told)
        self.clear()

    def clear(self) -> None:
        """Empty tables, and the clock as it is."""
        if self._played is not self.queries:
            self._engine.close()
            self._played, self._engine = self.queries, self._open()
        self._engine.clock.offset_us = 0
        self._engine.run(Operation("clear", lambda: execute("race_clear")))

    def run(self, operation: Operation[T]) -> T:
        if operation.name == "later":
            (statement,) = operation.steps()
            seconds = statement.params["s"]
            assert isinstance(seconds, float | int)
            self._engine.clock.offset_us += round(seconds * 1_000_000)
            return None  # type: ignore[return-value]
        return self._engine.run(operation)

    def play(self, scenario: Scenario, context: Any, choose: Choose, story: Story) -> None:
        players = {actor.name: SqlitePlayer(actor, context) for actor in scenario.actors}
        history = History()
        self.look(history)
        play(SqliteTurns(self, players, history, story), choose, story.order)
        assert not history.wrong, "; ".join(history.wrong)
        story.results = {name: player.result for name, player in players.items()}

    def break_at(self, operation: Operation[Any], point: Point) -> None:
        """Run an operation and leave it at the point, as a process that ends there would."""
        try:
            self._engine.run(ending(operation, point, _end))
        except Ended:
            pass  # rolled back, as the next opener of the file would do

    def invariants(self) -> list[str]:
        rows = self._engine.run(
            Operation("look", lambda: execute("race_invariants"), writes="", reads="both")
        )
        return [f"invariant {row[0]} does not hold" for row in rows]

    def look(self, history: History, *, moves: int = 1) -> None:
        rows = self._engine.run(Operation("look", lambda: execute("race_snapshot"), writes="", reads="both"))
        history.look(rows, moves=moves)

    def _open(self) -> SqliteEngine:
        """An engine whose queries know the explorer's own: they run on its connections."""
        kept = (table for table in TABLES if table not in OF_SERVERS)
        clear = tuple(f"DELETE FROM fencerow.{table}" for table in kept)  # noqa: S608 (our names)
        more = {
            "race_clear": clear,
            "race_snapshot": (SNAPSHOT,),
            "race_invariants": (together(self._rename),),
        }
        texts = {
            name: Query(name, tuple(qualified(text, self._rename) for text in statements), ())
            for name, statements in more.items()
        }
        return SqliteEngine(self._path, Queries("sqlite", {**self.queries, **texts}), prefix=self._prefix)


def _noting(operation: Operation[T], queries: Queries, touched: list[Footprint]) -> Operation[T]:
    """The same operation, with what each of its statements touches noted as it goes out."""

    def steps() -> Steps[T]:
        inner = operation.steps()
        try:
            statement = next(inner)
            while True:
                touched.append(footprint_of(queries.of(statement).statements))
                statement = inner.send((yield statement))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            inner.close()

    return msgspec.structs.replace(operation, start=steps) if operation.name != "later" else operation


class SqliteTurns:
    """The actors of one order, for the loop that plays it: nobody waits, so all who are not done may go."""

    state = None

    def __init__(
        self, arena: SqliteArena, players: dict[str, SqlitePlayer], history: History, story: Story
    ) -> None:
        self.touched: Footprint | None = None
        self._arena = arena
        self._players = players
        self._history = history
        self._story = story

    @property
    def is_over(self) -> bool:
        return all(player.done for player in self._players.values())

    def options(self) -> list[str]:
        return [name for name, player in self._players.items() if not player.done]

    def forced(self, options: Sequence[str]) -> None:  # noqa: ARG002 (each step is a choice)
        return None

    def step(self, name: str) -> None:
        """Run its next operation, and look when that changed something."""
        self.touched = self._players[name].go(self._arena, self._story)
        if would_show(self.touched.writes):
            self._arena.look(self._history)

    def unblock(self) -> NoReturn:
        raise AssertionError("nobody waits on one file")


class Ended(Exception):
    """The process is gone, as far as the database knows."""


def _end() -> NoReturn:
    raise Ended


class SqlitePlayer:
    """An actor, one operation a step."""

    def __init__(self, actor: Actor, context: Any) -> None:
        self.name = actor.name
        self.done = False
        self.result: Any = None
        self._script: Script = actor.script(context)
        self._next: Operation[Any] | None = None
        self._advance(None, None)

    def go(self, arena: SqliteArena, story: Story) -> Footprint:
        """Run the next operation as one transaction; returns what that touched."""
        assert self._next is not None
        name = self._next.name
        before = arena.version()
        touched = [NOTHING if name != "later" else Footprint(writes=frozenset({CLOCK}))]
        try:
            result, error = arena.run(_noting(self._next, arena.queries, touched)), None
        except AssertionError:
            raise
        except Exception as raised:
            result, error = None, raised
        story.tell(self.name, f"{name} → {result if error is None else error!r}")
        self._advance(result, error)
        together = reduce(or_, touched)
        return together if CLOCK in together.writes or arena.version() != before else together.looking

    def _advance(self, result: Any, error: Exception | None) -> None:
        try:
            self._next = self._script.send(result) if error is None else self._script.throw(error)
        except StopIteration as stop:
            self.done, self.result = True, stop.value
        except AssertionError:
            raise
        except Exception as raised:
            self.done, self.result = True, raised
