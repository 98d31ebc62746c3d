"""One connection of ours to a SQLite file: the time that statements see there, its transactions and its locks."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fencerow.db.left_out import look_text, refuse_left_out
from fencerow.db.queries import Queries
from fencerow.db.run import Operation, Param, Rows, Statement, run
from fencerow.db.sqlite_file import in_doubt, locked, open_file
from fencerow.db.sqlite_locks import LOOK_S, after, evenly, is_locked

T = TypeVar("T")

# Of the time that the last commit took, how much readers get before the next; and at most.
ROOM_SHARE, ROOM_MAX_S = 0.02, 0.02
READER_S = 0.05  # what one who has waited out all its time leaves to a short reader, to commit


class HostClock:
    """The time of this host in microseconds, which statements see. Tests move `offset_us`."""

    offset_us = 0

    def now_us(self) -> int:
        return time.time_ns() // 1000 + self.offset_us


class SqliteConnection:
    """One connection of ours: its transactions, and our statements in them."""

    def __init__(
        self, path: Path, queries: Queries, clock: HostClock, prefix: str, journal: str, timeout_s: float
    ) -> None:
        self.path = path
        self.queries = queries
        self._clock = clock
        self._query_us: int | None = None  # when the query that runs just now began
        self._prefix, self._worker_rows = prefix, f"{prefix}file.{prefix}workers"
        self._shuts, self._commit_s = journal != "wal", 0.0  # how long the last commit took
        self._touch = f"DELETE FROM main.{prefix}queues WHERE 0"  # noqa: S608 (a checked identifier)
        self._look = look_text(prefix)
        self.connection = open_file(
            path, queries, self._now_us, prefix=prefix, journal_mode=journal, timeout_s=timeout_s
        )

    def _now_us(self) -> int:
        """What statements take for the time: it stands still within one query."""
        return self._clock.now_us() if self._query_us is None else self._query_us

    def close(self) -> None:
        self.connection.close()

    def execute(self, statement: Statement) -> Rows:
        """Run one named query: all its statements at one instant, all their rows."""
        query = statement.query or self.queries[statement.name]
        params = bound(statement.params, query.parameters)
        rows: Rows = []
        self._query_us = self._clock.now_us()
        try:
            for text in query.statements:
                # Fetched to the end: an unfinished RETURNING keeps the write lock.
                cursor = self.connection.execute(text, params)
                found = cursor.fetchall()
                if query.users:
                    found = query.with_names([column[0] for column in cursor.description or ()], found)
                rows += found
                if statement.stores and cursor.rowcount != len(statement.stores):
                    self._check_stored(statement.stores)
        finally:
            self._query_us = None
        return rows

    def _check_stored(self, ids: Sequence[str]) -> None:
        """Nearly always so many rows were written, and nobody looks which. Behind WITH the driver counts none."""
        ((written,),) = self.connection.execute("SELECT changes()").fetchall()
        if written != len(ids):
            refuse_left_out(self.connection.execute(self._look, {"ids": json.dumps(ids)}).fetchall())

    def execute_on_workers(self, statement: Statement) -> Rows:
        """Run a query of worker rows alone: who waited for the jobs would keep a renewal waiting."""
        for text in self._texts(statement):
            left = text.replace(self._worker_rows, "").replace(f"{self._prefix}now()", "")
            assert self._prefix not in left, f"{statement.name!r} touches the jobs: see `operation`"
        return self.execute(statement)

    def _execute_on_jobs(self, statement: Statement) -> Rows:
        """Run a query of the jobs alone: who waited for worker rows would keep a commit waiting, which keeps a renewal
        waiting, which keeps the worker rows."""
        for text in self._texts(statement):
            assert self._worker_rows not in text, f"{statement.name!r} touches worker rows: see `operation`"
        return self.execute(statement)

    def _texts(self, statement: Statement) -> tuple[str, ...]:
        return (statement.query or self.queries[statement.name]).statements

    def run_alone(self, operation: Operation[T], timeout_s: float, *, waited_s: float = 0.0) -> T:
        """Run an operation in a transaction of its own. `waited_s`: how long it has waited for its locks already."""
        connection, commits, changes = self.connection, False, self.connection.total_changes
        waits_for = "its turn"
        try:
            takes_turn = operation.writes != "" or operation.reads == "both"
            self.begin(timeout_s, writes=takes_turn)
            waits_for = f"the worker rows in {self.path}-workers"
            answer = run(operation.start(), self.execute if takes_turn else self._execute_on_jobs)
            waits_for = "others to end reading, to commit"
            commits = connection.in_transaction
            if commits:
                self._commit(writes=connection.total_changes != changes)
        except BaseException as error:
            self.undo(error, commits=commits)
            if isinstance(error, sqlite3.OperationalError) and is_locked(error):
                in_all_s = round(waited_s + timeout_s, 3)
                raise locked(self.path, f"{operation.name} waited {in_all_s:g} s for {waits_for}") from error
            raise
        return answer

    def _commit(self, *, writes: bool) -> None:
        """In a rollback journal a commit shuts readers out until the disk has it. Where that takes long and the next
        writer commits a millisecond later, they would seldom find the file open: they get time to come in before."""
        if writes and (room_s := min(self._commit_s * ROOM_SHARE, ROOM_MAX_S)) >= LOOK_S:
            time.sleep(room_s)
        began = time.monotonic()
        self.connection.execute("COMMIT")
        if writes and self._shuts:
            self._commit_s = time.monotonic() - began

    def undo(self, error: BaseException, *, commits: bool) -> None:
        """Roll back what an error has ended.

        Raises:
            OutcomeUnknown: it came with the commit, and may not have kept it.
        """
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        unknown = in_doubt(error, self.path) if commits else None
        if unknown is not None:
            raise unknown from error

    def begin(self, timeout_s: float, *, writes: bool) -> None:
        """Take the lock before anything is read: one taken later fails at once."""
        until = after(timeout_s)
        self._wait_for_locks(0.0)
        try:
            self.connection.execute("BEGIN")
            try:
                evenly(lambda: self._take_lock(writes=writes), until)
            except sqlite3.OperationalError as error:
                if not writes or "no such table" not in str(error):
                    raise
                self.connection.execute("ROLLBACK")  # before the first migration there is no table to touch
                evenly(lambda: self.connection.execute("BEGIN IMMEDIATE"), until)
        finally:
            self._wait_for_locks(max(timeout_s, READER_S))

    def _take_lock(self, *, writes: bool) -> None:
        """Take the lock, which stays until the transaction ends, by a write that changes no row, or a read that finds
        none: in a rollback journal each commit elsewhere shuts readers out too."""
        if writes:
            self.connection.execute(self._touch)
        else:
            self.connection.execute("SELECT 1 FROM main.sqlite_master LIMIT 0").fetchall()

    def _wait_for_locks(self, timeout_s: float) -> None:
        """How long SQLite itself waits for a lock from now on."""
        self.connection.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}")


def bound(params: Mapping[str, Param], names: Iterable[str]) -> dict[str, Any]:
    """Parameters as sqlite3 takes them: lists travel as JSON text. All in one call: a submit has two dozen."""
    return {name: json.dumps(value) if isinstance(value := params[name], list) else value for name in names}
