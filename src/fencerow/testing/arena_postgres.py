"""Races on PostgreSQL: a connection per actor, one that looks for locks, and statements that can be held.

In the held mode a statement that changes data stops once its snapshot is taken and before it looks at a
row: BEFORE … FOR EACH STATEMENT triggers wait there for an advisory lock, the actor's gate. Three kinds of
fault show only so, because whole statements in any order never have a snapshot older than a lock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeVar

import psycopg

from fencerow.db.engine import drive
from fencerow.db.faults import CONTENTION
from fencerow.db.postgres import names
from fencerow.db.queries import Queries, Query, qualified, split
from fencerow.db.statement import Operation, Rows, Statement
from fencerow.testing.actor import Course
from fencerow.testing.crash import Point
from fencerow.testing.invariants import SNAPSHOT, History, together
from fencerow.testing.orders import Choose
from fencerow.testing.race import Scenario, Story
from fencerow.testing.wire import Wire

T = TypeVar("T")

TABLES = (
    "jobs", "finished_jobs", "keys", "workers", "queues", "job_events", "job_logs", "job_progress",
)  # fmt: skip
GATES = 7_300_000  # advisory lock numbers of the actors, from here on
RESTARTS_MAX = 5
STUCK_S = 20.0
VACUUM_EVERY = 200

# Everything here is for tests alone and is made by the owner of the schema, who need not be a superuser.
PREPARE = """
CREATE TABLE IF NOT EXISTS fencerow.race_clock (offset_s double precision NOT NULL);
CREATE OR REPLACE FUNCTION fencerow.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT clock_timestamp() + offset_s * INTERVAL ''1 second'' FROM fencerow.race_clock';
CREATE OR REPLACE FUNCTION fencerow.hold() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF coalesce(current_setting('fencerow.gate', true), '') <> '' THEN
        PERFORM pg_advisory_lock(current_setting('fencerow.gate')::bigint);
        PERFORM pg_advisory_unlock(current_setting('fencerow.gate')::bigint);
    END IF;
    RETURN true;
END $$;
CREATE OR REPLACE FUNCTION fencerow.hold_statement() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM fencerow.hold();
    RETURN NULL;
END $$;
"""
TRIGGER = """
CREATE OR REPLACE TRIGGER race_hold BEFORE INSERT OR UPDATE OR DELETE ON fencerow.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION fencerow.hold_statement();
"""
# A locking SELECT fires no trigger: it waits in a condition, which is judged before the row is locked.
HELD_SELECTS = {"lock_finished": ("WHERE ", "WHERE fencerow.hold() AND ")}
LATER = "UPDATE fencerow.race_clock SET offset_s = offset_s + CAST(:s AS double precision)"


class PostgresArena:
    """A database of its own in which scenarios are played; its schema is migrated already."""

    def __init__(self, conninfo: str, queries: Queries, *, schema: str = "fencerow", held: bool = False) -> None:
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
            for table in TABLES:
                self._control.run(self._text(f"VACUUM fencerow.{table}"))
        self._control.run(self._clear)

    def run(self, operation: Operation[T]) -> T:
        if operation.alone:
            return drive(operation.steps(), self._execute)
        self._control.run("BEGIN")
        try:
            result = drive(operation.steps(), self._execute)
        except BaseException:
            self._control.run("ROLLBACK")
            raise
        self._control.run("COMMIT")
        return result

    def play(self, scenario: Scenario, context: Any, choose: Choose, story: Story) -> None:
        players = [
            Player(Course(actor, context), self._seat(number), GATES + number, self)
            for number, actor in enumerate(scenario.actors)
        ]
        history = History()
        try:
            self.look(history)
            for player in players:
                player.course.open()
            while any(not player.course.done for player in players):
                options = {player.course.actor.name: player for player in players if player.may_go}
                assert options, "nobody can go on: the actors wait for each other"
                player = options[choose(list(options))]
                story.order.append(player.course.actor.name)
                player.go(story)
                self._settle(players, story)
                ends = sum(player.ends for player in players)
                if ends:
                    self.look(history, moves=ends)
                for player in players:
                    player.ends = 0
        except BaseException:
            self._leave()
            raise
        assert not history.wrong, "; ".join(history.wrong)
        story.results = {player.course.actor.name: player.course.result for player in players}
        for player in players:
            if isinstance(player.course.result, psycopg.Error):
                raise AssertionError(f"{player.course.actor.name} met {player.course.result!r}")

    def invariants(self) -> list[str]:
        found = [str(row[0]) for row in self._control.run(self._invariants)]
        return [f"invariant {name} does not hold" for name in found]

    def look(self, history: History, *, moves: int = 1) -> None:
        history.look(self._control.run(self._snapshot), moves=moves)

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
        if self._held:
            self._control.run(f"SELECT pg_advisory_lock({gate})")

    def open(self, gate: int) -> None:
        if self._held:
            self._control.run(f"SELECT pg_advisory_unlock({gate})")

    def query(self, name: str) -> Query:
        if name == "later":
            return self._later
        query = self.queries[name]
        if self._held and name in HELD_SELECTS:
            old, new = (self._text(part) for part in HELD_SELECTS[name])
            return self.queries.altered(name, old, new)[name]
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
            wire.start(self.query(statement.name), statement.params)
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

    def _settle(self, players: list[Player], story: Story) -> None:
        """Wait until each statement under way has either its reply or a lock to wait for."""
        deadline = time.monotonic() + STUCK_S
        while True:
            under_way = [player for player in players if player.wire.busy]
            for player in under_way:
                if player.wire.replied():
                    player.take_reply(story)
            under_way = [player for player in players if player.wire.busy]
            if not under_way:
                return
            if self._all_wait(under_way, story):
                return
            assert time.monotonic() < deadline, "a statement neither ends nor waits for a lock"
            under_way[0].wire.replied(0.0002)

    def _all_wait(self, under_way: list[Player], story: Story) -> bool:
        pids = ",".join(str(player.wire.pid) for player in under_way)
        rows = self._control.run(
            f"SELECT pid, pg_blocking_pids(pid) FROM unnest(ARRAY[{pids}]) AS pid"  # noqa: S608 (numbers)
        )
        known = {wire.pid for wire in self._seats.values()} | {self._control.pid}
        blockers = {pid: by & known for pid, by in _as_sets(rows)}
        if not all(blockers.values()):
            return False
        for player in under_way:
            player.held = self._control.pid in blockers[player.wire.pid]
            if not player.held:
                story.waited.add(player.course.actor.name)
        ring = _ring(blockers)
        if ring:
            # The server would break it, but at whom depends on timing: always at the last actor of the ring.
            victim = max((player for player in under_way if player.wire.pid in ring), key=lambda p: p.gate)
            victim.break_ring()
            return False
        return True

    def _execute(self, statement: Statement) -> Rows:
        self._control.start(self.query(statement.name), statement.params)
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
        self._control.run("SELECT pg_advisory_unlock_all()")

    def _text(self, text: str) -> str:
        return qualified(text, self._rename)

    def prepare(self) -> None:
        """Make what the explorer needs in the schema."""
        self._control.run("SET client_min_messages = error")
        self._control.run(self._text(PREPARE))
        for table in TABLES if self._held else ():
            self._control.run(self._text(TRIGGER.format(table=table)))
        deletes = [f"DELETE FROM fencerow.{table};" for table in (*TABLES, "race_clock")]
        self._clear = self._text(" ".join(deletes) + "INSERT INTO fencerow.race_clock VALUES (0); SELECT pg_advisory_unlock_all();")
        self._snapshot = self._text(SNAPSHOT)
        self._invariants = together(self._rename)
        self._later = Query("later", split(self._text(LATER)), ("s",))


class Player:
    """An actor on its connection."""

    def __init__(self, course: Course, wire: Wire, gate: int, arena: PostgresArena) -> None:
        self.course = course
        self.wire = wire
        self.gate = gate
        self.held = False
        self.ends = 0  # transactions that ended since somebody looked
        self._arena = arena
        self._doing = ""
        self._shut = False
        self._broken = False

    @property
    def may_go(self) -> bool:
        return not self.course.done and (not self.wire.busy or self.held)

    def go(self, story: Story) -> None:
        """Take one step: send the next statement or the transaction's end, or go on with a held one."""
        if self.wire.busy:
            story.tell(self.course.actor.name, f"{self._doing}, held until now, goes on")
            self.held = self._shut = False
            self._arena.open(self.gate)
        elif self.course.pending is None:
            self._doing = "ROLLBACK" if self.course.aborts else "COMMIT"
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
            story.tell(self.course.actor.name, f"{self._doing} → {type(error).__name__}")
            self._refused(error)
            return
        story.tell(self.course.actor.name, f"{self._doing} → {_shown(rows)}" if statement else self._doing)
        if statement is None or not self.course.begun:
            self.ends += 1
        if statement is None:
            self.course.ended()
        else:
            self.course.answered(rows)

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
        self.wire.start(self._arena.query(statement.name), statement.params)

    def _refused(self, error: psycopg.Error) -> None:
        if self.course.begun:
            self.wire.run("ROLLBACK")
        lost = isinstance(error, CONTENTION) or self._broken
        self._broken = False
        if lost and self.course.restarts < RESTARTS_MAX:
            self.course.restart()
        else:
            self.course.failed(error)


def _as_sets(rows: Rows) -> list[tuple[int, set[int]]]:
    return [(int(str(pid)), set(by)) for pid, by in rows]  # type: ignore[call-overload]


def _ring(blockers: dict[int, set[int]]) -> set[int]:
    """Those who wait for each other in a circle, if any do."""
    for start in blockers:
        seen, frontier = set(), {start}
        while frontier:
            frontier = {pid for other in frontier for pid in blockers.get(other, ())} - seen
            seen |= frontier
        if start in seen:
            return {pid for pid in seen if pid in blockers}
    return set()


def _shown(rows: Rows) -> str:
    text = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in rows)
    return text if len(text) < 160 else text[:157] + "…"
