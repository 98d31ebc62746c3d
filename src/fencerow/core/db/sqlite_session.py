"""One transaction on a SQLite connection, and the time that its statements see."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fencerow.core.db.queries import Queries
from fencerow.core.db.run import Operation, Param, Rows, Statement, run
from fencerow.core.db.sqlite_faults import translated
from fencerow.core.db.strikes import sheltered

T = TypeVar("T")


class Clock:
    """The time that statements see, in microseconds; constant while one query runs. Tests move `offset_us`."""

    def __init__(self) -> None:
        self.offset_us = 0
        self._pinned = threading.local()

    def now_us(self) -> int:
        pinned = getattr(self._pinned, "us", None)
        return pinned if pinned is not None else time.time_ns() // 1000 + self.offset_us

    @contextmanager
    def pinned(self) -> Iterator[None]:
        self._pinned.us = self.now_us()
        try:
            yield
        finally:
            self._pinned.us = None


class SqliteSession:
    """One open transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection, queries: Queries, clock: Clock, path: Path) -> None:
        self.connection = connection
        self._path = path
        self._queries = queries
        self._clock = clock

    @sheltered
    def run(self, operation: Operation[T]) -> T:
        with translated(self._path):
            return run(operation.steps(), self.execute)

    async def arun(self, operation: Operation[T]) -> T:
        return await asyncio.to_thread(self.run, operation)

    def abandon(self) -> None:
        """Nobody but its own thread may give the file back; at least no statement keeps it from that."""
        self.connection.interrupt()

    def execute(self, statement: Statement) -> Rows:
        """Run one named query: all its statements at one instant, all their rows."""
        query = self._queries.of(statement)
        params = {name: bound(statement.params[name]) for name in query.parameters}
        rows: Rows = []
        with self._clock.pinned():
            for text in query.statements:
                # Fetched to the end: an unfinished RETURNING keeps the write lock.
                cursor = self.connection.execute(text, params)
                found = cursor.fetchall()
                rows += query.with_names([column[0] for column in cursor.description or ()], found)
        return rows


def bound(value: Param) -> Any:
    """A parameter as sqlite3 takes it: lists travel as JSON text."""
    return json.dumps(value) if isinstance(value, list) else value
