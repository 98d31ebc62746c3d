"""One connection to a SQLite file: its transactions, its statements, and the time that they see."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fencerow.core.db.queries import Queries
from fencerow.core.db.run import Operation, Param, Rows, Statement, run
from fencerow.core.db.sqlite_file import in_doubt, is_locked, translated
from fencerow.core.db.strikes import sheltered

T = TypeVar("T")

LOCK_LOOK_S = 0.001  # between two looks for a lock


class Clock:
    """The time that statements see, in microseconds; constant while one query runs. Tests move `offset_us`."""

    def __init__(self) -> None:
        self.offset_us = 0
        self._pinned = threading.local()

    def now_us(self) -> int:
        pinned = getattr(self._pinned, "us", None)
        return pinned if pinned is not None else time.time_ns() // 1000 + self.offset_us

    def pin(self) -> None:
        """This thread sees one instant from now on, until `unpin`."""
        self._pinned.us = time.time_ns() // 1000 + self.offset_us

    def unpin(self) -> None:
        self._pinned.us = None


class SqliteSession:
    """One connection: its transactions, and our statements in them."""

    def __init__(
        self, connection: sqlite3.Connection, queries: Queries, clock: Clock, path: Path, prefix: str
    ) -> None:
        self.connection = connection
        self._path = path
        self._touch = f"DELETE FROM main.{prefix}queues WHERE 0"  # noqa: S608 (a checked identifier)
        self.queries = queries
        self._clock = clock

    @sheltered
    def run(self, operation: Operation[T]) -> T:
        with translated(self._path):
            return run(operation.start(), self.execute)

    async def arun(self, operation: Operation[T]) -> T:
        return await asyncio.to_thread(self.run, operation)

    def close(self) -> None:
        self.connection.close()

    def abandon(self) -> None:
        """Nobody but its own thread may give the file back; at least no statement keeps it from that."""
        self.connection.interrupt()

    def execute(self, statement: Statement) -> Rows:
        """Run one named query: all its statements at one instant, all their rows."""
        query = statement.query or self.queries.named[statement.name]
        params = {name: bound(statement.params[name]) for name in query.parameters}
        rows: Rows = []
        self._clock.pin()
        try:
            for text in query.statements:
                # Fetched to the end: an unfinished RETURNING keeps the write lock.
                cursor = self.connection.execute(text, params)
                found = cursor.fetchall()
                rows += (
                    query.with_names([column[0] for column in cursor.description or ()], found)
                    if query.users
                    else found
                )
        finally:
            self._clock.unpin()
        return rows

    def run_alone(self, operation: Operation[T], timeout_s: float) -> T:
        """Run an operation in a transaction of its own."""
        connection, commits = self.connection, False
        try:
            self._begin(timeout_s, writes=operation.writes != "" or operation.both_files)
            answer = run(operation.start(), self.execute)
            commits = connection.in_transaction
            if commits:
                connection.execute("COMMIT")
        except BaseException as error:
            self._undo(error, commits=commits)
            raise
        return answer

    @contextmanager
    def transaction(self, timeout_s: float) -> Iterator[None]:
        """A transaction for user code that has its lock on the jobs' file; rolled back when the block raises."""
        connection, commits = self.connection, False
        try:
            self._begin(timeout_s, writes=True)
            yield
            commits = connection.in_transaction
            if commits:
                connection.execute("COMMIT")
        except BaseException as error:
            self._undo(error, commits=commits)
            raise

    def _undo(self, error: BaseException, *, commits: bool) -> None:
        """Roll back what an error has ended.

        Raises:
            OutcomeUnknown: it came with the commit, and may not have kept it.
        """
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        if commits and isinstance(error, sqlite3.OperationalError):
            unknown = in_doubt(error, self._path)
            if unknown is not None:
                raise unknown from error

    def _begin(self, timeout_s: float, *, writes: bool) -> None:
        """Take the lock before anything is read: one taken later fails at once.

        SQLite waits longer after each try, so that whoever has waited longest looks least often, and beside a process
        that writes without a pause comes to nothing for seconds. Here everybody looks equally often.
        """
        until = time.monotonic() + timeout_s
        self._wait_for_locks(0.0)
        try:
            self.connection.execute("BEGIN")
            while not self._took_lock(timeout_s, writes, time.monotonic() >= until):
                time.sleep(random.uniform(0.5, 1.5) * LOCK_LOOK_S)  # noqa: S311 (jitter, not a secret)
        finally:
            self._wait_for_locks(timeout_s)

    def _took_lock(self, timeout_s: float, writes: bool, is_last: bool) -> bool:
        """Try to take the lock, which stays until the transaction ends; the last time raise what keeps it away.

        By a write that changes no row, or a read that finds none: in a rollback journal each commit elsewhere shuts
        readers out too. Before the first migration there is no table to touch.
        """
        try:
            if writes:
                self.connection.execute(self._touch)
            else:
                self.connection.execute("SELECT 1 FROM main.sqlite_master LIMIT 0").fetchall()
        except sqlite3.OperationalError as error:
            if not is_last and is_locked(error):
                return False
            if not writes or "no such table" not in str(error):
                raise
            self.connection.execute("ROLLBACK")
            self._wait_for_locks(timeout_s)
            self.connection.execute("BEGIN IMMEDIATE")
        return True

    def _wait_for_locks(self, timeout_s: float) -> None:
        """How long SQLite itself waits for a lock from now on."""
        self.connection.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}")


def bound(value: Param) -> Any:
    """A parameter as sqlite3 takes it: lists travel as JSON text."""
    return json.dumps(value) if isinstance(value, list) else value
