"""Races on PostgreSQL: a connection per actor, one that looks for locks, and statements that can be held."""

from __future__ import annotations

import select
import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg

from fencerow.db.queries import Queries, Query, qualified, split
from fencerow.db.queries import postgres_names as names
from fencerow.db.run import Operation, Rows, Statement, run
from fencerow_proof.arena.actor import Course
from fencerow_proof.arena.crash import Point
from fencerow_proof.arena.held import CLEAR, EMPTY, HELD_SELECTS, LATER, PATIENT, PREPARE, TABLES, TRIGGER
from fencerow_proof.arena.invariants import SNAPSHOT, History, together
from fencerow_proof.arena.player import Player
from fencerow_proof.arena.race import Scenario, Story
from fencerow_proof.arena.reduction import Reduction
from fencerow_proof.arena.wire import Wire
from fencerow_proof.explorer.footprint import Footprint
from fencerow_proof.explorer.orders import Choose, Known
from fencerow_proof.explorer.playing import play
from fencerow_proof.explorer.rings import ring

T = TypeVar("T")

GATES = 7_300_000  # advisory lock numbers of the actors, from here on
STUCK_S = 20.0
ANSWER_S = 0.0008
PAUSE_S = 0.0002
VACUUM_EVERY = 200


class PostgresArena:
    """A database of its own in which scenarios are played; its schema is migrated already."""

    def __init__(
        self, conninfo: str, queries: Queries, *, schema: str = "fencerow", held: bool = False
    ) -> None:
        self.mode = "held" if held else "plain"
        self.queries = queries
        self.offset_us = 0  # the clock lies in the database
        self._rename = names(schema)
        self.url = conninfo
        self._held = held
        self._control = Wire(conninfo, {})
        self._seats: dict[int, Wire] = {}
        self._settings: Mapping[str, str] = {}
        self._plays = 0
        self.prepare()

    def close(self) -> None:
        self._leave()
        self._control.close()

    # --- the arena ---------------------------------------------------------------------------------

    def fresh(self, scenario: Scenario) -> None:
        if scenario.settings != self._settings or any(seat.busy for seat in self._seats.values()):
            self._leave()
        self._settings = scenario.settings
        self.clear()

    def clear(self) -> None:
        """Empty tables, and the clock as it is."""
        self._plays += 1
        if self._plays % VACUUM_EVERY == 0:
            tables = ("race_clock", *TABLES)
            self._control.run(self._text("VACUUM " + ", ".join(f"fencerow.{table}" for table in tables)))
        self._control.run(self._text("SELECT fencerow.race_clear()"))

    def run(self, operation: Operation[T]) -> T:
        if operation.alone:
            return run(operation.steps(), self._execute)
        self._control.run("BEGIN")
        try:
            result = run(operation.steps(), self._execute)
        except BaseException:
            self._control.run("ROLLBACK")
            raise
        self._control.run("COMMIT")
        return result

    def play(self, scenario: Scenario, context: Any, choose: Choose, story: Story) -> None:
        reduction = Reduction()
        players = [
            Player(Course(actor, context), self._seat(number), GATES + number, self, reduction)
            for number, actor in enumerate(scenario.actors)
        ]
        history = History()
        try:
            self._shut_gates(players)
            self.look(history)
            for player in players:
                player.course.open()
            play(PostgresTurns(self, players, reduction, history, story), choose, story.order)
        except Known:
            for player in players:
                player.abandon()
            raise
        except BaseException:
            self._leave()
            raise
        assert not history.wrong, "; ".join(history.wrong)
        story.results = {player.course.actor.name: player.course.result for player in players}
        for player in players:
            if isinstance(player.course.result, psycopg.Error):
                raise AssertionError(f"{player.course.actor.name} met {player.course.result!r}")

    def invariants(self) -> list[str]:
        found = [str(row[0]) for row in self._control.run("EXECUTE race_invariants")]
        return [f"invariant {name} does not hold" for name in found]

    def look(self, history: History, *, moves: int = 1) -> None:
        history.look(self._control.run("EXECUTE race_snapshot"), moves=moves)

    def break_at(self, operation: Operation[Any], point: Point) -> None:
        """Run an operation on a connection of its own and break that at the point; the server ends what it must."""
        wire = Wire(self.url, {})
        try:
            self._run_until(wire, operation, point)
        finally:
            pid = wire.pid
            wire.close()
            self._await_end(pid)

    # --- for players -------------------------------------------------------------------------------

    def shut(self, gate: int) -> None:
        self._control.run(f"SELECT pg_advisory_lock({gate})")

    def open(self, gate: int) -> None:
        self._control.run(f"SELECT pg_advisory_unlock({gate})")

    def query(self, statement: Statement) -> Query:
        if statement.name == "later":
            return self._later
        query = self.queries.of(statement)
        if self._held and statement.name in HELD_SELECTS:
            old, new = (self._text(part) for part in HELD_SELECTS[statement.name])
            return query.altered(old, new)
        if statement.name in PATIENT:
            return query.altered(*PATIENT[statement.name])
        return query

    # --- crashes ---------------------------------------------------------------------------------

    def _run_until(self, wire: Wire, operation: Operation[Any], point: Point) -> None:
        if not operation.alone:
            wire.run("BEGIN")
        steps = operation.steps()
        number, statement = 0, next(steps)
        while True:
            if point == Point("before", number):
                return
            wire.start(self.query(statement), statement.params)
            if point == Point("sent", number):
                return
            rows = wire.wait()
            if point == Point("after", number):
                return
            try:
                statement = steps.send(rows)
            except StopIteration:
                break
            number += 1
        if not operation.alone:
            wire.run("COMMIT")

    def _await_end(self, pid: int) -> None:
        deadline = time.monotonic() + STUCK_S
        while self._control.run(f"SELECT FROM pg_stat_activity WHERE pid = {pid}"):
            assert time.monotonic() < deadline, "the server keeps a broken connection"

    # --- inside ------------------------------------------------------------------------------------

    def settle(self, players: list[Player], stepped: Player, story: Story) -> None:
        """Wait until each statement under way has either its reply or a lock to wait for."""
        deadline = time.monotonic() + STUCK_S
        asked = False
        while True:
            _take_replies(players, story)
            under_way = [player for player in players if player.wire.busy and not player.held]
            # Who waited cannot have gone on while nobody let go of a lock.
            if all(player.waits for player in under_way):
                return
            # Most statements are answered within this time: only then is the server asked who waits.
            if not stepped.waits and not asked and _heard(under_way, ANSWER_S):
                continue
            asked = True
            if self._all_wait(under_way, story):
                return
            assert time.monotonic() < deadline, "a statement neither ends nor waits for a lock"
            _heard(under_way, PAUSE_S)

    def _all_wait(self, under_way: list[Player], story: Story) -> bool:
        pids = ",".join(str(player.wire.pid) for player in under_way)
        rows = self._control.run(
            f"SELECT pid, pg_blocking_pids(pid) FROM unnest(ARRAY[{pids}]) AS pid"  # noqa: S608 (numbers)
        )
        known = {wire.pid for wire in self._seats.values()} | {self._control.pid}
        blockers = {pid: by & known for pid, by in _as_sets(rows)}
        at_gates = any(self._control.pid in by for by in blockers.values())  # they are about to say so
        if at_gates or not all(blockers.values()):
            return False
        story.waited.update(player.name for player in under_way)
        circle = ring(blockers)
        if circle:
            # The server would break it, but at whom depends on timing: always at the last actor of the ring.
            victim = max((player for player in under_way if player.wire.pid in circle), key=lambda p: p.gate)
            victim.break_ring()
            return False
        for player in under_way:
            player.waits = True
        return True

    def _shut_gates(self, players: list[Player]) -> None:
        if self._held:
            gates = ", ".join(f"pg_advisory_lock({player.gate})" for player in players)
            self._control.run(f"SELECT pg_advisory_unlock_all(); SELECT {gates}")

    def _execute(self, statement: Statement) -> Rows:
        self._control.start(self.query(statement), statement.params)
        return self._control.wait()

    def _seat(self, number: int) -> Wire:
        if number not in self._seats:
            gate = {"fencerow.gate": str(GATES + number)} if self._held else {}
            wire = Wire(self.url, {**gate, **self._settings})
            self._seats[number] = wire
        return self._seats[number]

    def _leave(self) -> None:
        for wire in self._seats.values():
            wire.close()
        self._seats.clear()
        self._control.rest()  # a play that was broken off must not break those after it
        self._control.run("SELECT pg_advisory_unlock_all()")

    def _text(self, text: str) -> str:
        return qualified(text, self._rename)

    def prepare(self) -> None:
        """Make what the explorer needs in the schema."""
        self._control.run("SET client_min_messages = error")
        self._control.run(self._text(PREPARE))
        for table in TABLES if self._held else ():
            self._control.run(self._text(TRIGGER.format(table=table)))
        emptying = "\n    ".join(EMPTY.format(table=table) for table in TABLES)
        self._control.run(self._text(CLEAR.format(emptying=emptying)))
        # Asked after every transaction: planned once.
        self._control.run("DEALLOCATE ALL")
        self._control.run(f"PREPARE race_snapshot AS {self._text(SNAPSHOT)}")
        self._control.run(f"PREPARE race_invariants AS {together(self._rename)}")
        self._later = Query("later", split(self._text(LATER)), ("s",))


class PostgresTurns:
    """The actors of one order, for the loop that plays it."""

    def __init__(
        self,
        arena: PostgresArena,
        players: list[Player],
        reduction: Reduction,
        history: History,
        story: Story,
    ) -> None:
        self._arena = arena
        self._players = players
        self._reduction = reduction
        self._history = history
        self._story = story

    @property
    def is_over(self) -> bool:
        return all(player.course.done for player in self._players)

    @property
    def state(self) -> Hashable:
        return self._reduction.state()

    @property
    def touched(self) -> Footprint | None:
        return self._reduction.touched

    def options(self) -> list[str]:
        return [player.name for player in self._players if player.may_go]

    def forced(self, options: Sequence[str]) -> None:  # noqa: ARG002 (each step is a choice)
        return None

    def step(self, name: str) -> None:
        """Take it, wait until nothing moves, and look when a transaction ended."""
        (stepped,) = (player for player in self._players if player.name == name)
        self._reduction.begin()
        stepped.go(self._story)
        self._arena.settle(self._players, stepped, self._story)
        for each in self._players:
            each.note_rest()
        ends = sum(player.ends for player in self._players)
        if ends:
            self._arena.look(self._history, moves=ends)
        for player in self._players:
            player.ends = 0

    def unblock(self) -> None:
        raise AssertionError("nobody can go on: the actors wait for each other")


def _take_replies(players: list[Player], story: Story) -> None:
    """Take in what has come, until nothing has; a lock that somebody let go of may set any other free."""
    for player in players:
        if player.wire.busy and player.wire.replied():
            player.take_reply(story)
        elif player.wire.busy:
            player.held = player.held or player.wire.at_gate
    if any(player.freed for player in players):
        for player in players:
            player.freed = player.waits = False


def _heard(under_way: list[Player], timeout_s: float) -> bool:
    """Whether a reply has begun to come in, after at most this time."""
    ready, _, _ = select.select([player.wire.socket for player in under_way], [], [], timeout_s)
    return bool(ready)


def _as_sets(rows: Rows) -> list[tuple[int, set[int]]]:
    return [(int(str(pid)), set(by)) for pid, by in rows]  # type: ignore[call-overload]
