"""A lent SQLite connection: sqlite3's own, or aiosqlite's.

Nothing is registered on it: where our statements ask for the time, it is passed in as a parameter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencerow.db.adapters.frame import (
    INSIDE,
    ConnectionStanding,
    Frame,
    Lent,
    Plan,
    SentText,
    closed,
    named,
)
from fencerow.db.errors import Busy, FencerowError, OtherDatabase, RetryTransaction, UnusableConnection
from fencerow.db.left_out import look_text, refuse_left_out
from fencerow.db.run import Operation, Rows, Statement
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_connection import bound
from fencerow.db.sqlite_file import fault

if TYPE_CHECKING:
    import aiosqlite

AUTOCOMMIT_OF_OLD = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL; the attribute is missing before Python 3.12
NOW = "fencerow_now_us"


class LentSqlite(Lent):
    """What all ways to a SQLite file have in common."""

    kind = "SQLite connection"

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self.queries = engine.queries
        self._checked = False

    def frame(self, operation: Operation[Any], standing: ConnectionStanding) -> Frame:
        if operation.of_workers:
            raise _no_workers(operation.name)
        if standing is ConnectionStanding.OPEN:
            return INSIDE
        # The write lock is taken before anything is read: one taken later fails at once, whatever the timeout.
        begin = ("BEGIN IMMEDIATE",) if operation.writes else ("BEGIN",)
        return Frame(begin, ("COMMIT",) if standing is ConnectionStanding.ALONE else (), ("ROLLBACK",))

    def check(self) -> Plan[None]:
        """Refuse a connection to another file."""
        if not self._checked:
            rows = yield SentText("PRAGMA database_list")
            main = next(str(row[2] or "") for row in rows if row[1] == "main")
            if not _same_file(main, self._engine.path):
                raise OtherDatabase(
                    f"this connection is to {main or 'a database in memory'}",
                    f"the jobs are in {self._engine.path}",
                    "pass a connection to that file",
                )
            self._checked = True

    def statement(self, statement: Statement) -> Plan[Rows]:
        rows = yield from super().statement(statement)
        if statement.stores:
            asked = bound({"ids": list(statement.stores)}, ("ids",))
            refuse_left_out((yield SentText(look_text(self._engine.prefix), asked, ("ids",))))
        return rows

    def written(self, statement: Statement) -> Iterator[SentText]:
        query = self.queries.of(statement)
        params = bound(statement.params, query.parameters)
        params[NOW] = self._engine.clock.now_us()
        for text in query.statements:
            if f"{self._engine.prefix}file." in text:
                raise _no_workers(statement.name)
            written = text.replace(f"{self._engine.prefix}now()", f":{NOW}")
            yield SentText(written, params, (*query.parameters, NOW), users=query if query.users else None)

    def fault(self, error: BaseException, standing: ConnectionStanding) -> FencerowError | None:
        cause = getattr(error, "orig", error)
        if not isinstance(cause, sqlite3.OperationalError):
            return None
        known = fault(cause, self._engine.path)
        if isinstance(known, Busy) and standing is ConnectionStanding.OPEN:
            return RetryTransaction(
                "your transaction cannot write: another connection wrote, or writes, since it began to read",
                str(cause),
                "roll it back and run it again; BEGIN IMMEDIATE avoids this",
            )
        return known


class LentSqlite3(LentSqlite):
    """Python's own driver, in each of its transaction modes. Its row and text factories stay as they are."""

    kind = "sqlite3 connection"

    def __init__(self, connection: sqlite3.Connection, engine: SqliteEngine) -> None:
        super().__init__(engine)
        self._connection = connection

    def standing(self) -> ConnectionStanding:
        return standing_of(self._connection)

    def send(self, sent: SentText) -> Rows:
        connection = self._connection
        made = connection.text_factory
        connection.text_factory = str
        try:
            # A cursor made like this has no row factory, whatever the connection has.
            cursor = sqlite3.Cursor(connection).execute(sent.text, dict(sent.params))
            return named(sent, [column[0] for column in cursor.description or ()], cursor.fetchall())
        finally:
            connection.text_factory = made


class LentAiosqlite(LentSqlite):
    """aiosqlite, which runs a sqlite3 connection in a thread of its own."""

    kind = "aiosqlite connection"

    def __init__(self, connection: aiosqlite.Connection, engine: SqliteEngine) -> None:
        super().__init__(engine)
        self._connection = connection

    def standing(self) -> ConnectionStanding:
        try:
            return standing_of(self._connection)
        except ValueError:
            raise closed(self.kind) from None

    async def send(self, sent: SentText) -> Rows:
        connection = self._connection
        made = connection.text_factory
        connection.text_factory = str
        try:
            async with connection.cursor() as cursor:
                cursor.row_factory = None
                await cursor.execute(sent.text, dict(sent.params))
                rows = [tuple(row) for row in await cursor.fetchall()]
                return named(sent, [column[0] for column in cursor.description or ()], rows)
        finally:
            connection.text_factory = made


def standing_of(connection: sqlite3.Connection | aiosqlite.Connection) -> ConnectionStanding:
    """How a connection stands in any of sqlite3's transaction modes."""
    try:
        if connection.in_transaction:
            return ConnectionStanding.OPEN
        mode = getattr(connection, "autocommit", AUTOCOMMIT_OF_OLD)
        begins_itself = connection.isolation_level is not None if mode == AUTOCOMMIT_OF_OLD else not mode
    except sqlite3.ProgrammingError as error:
        raise UnusableConnection(
            "this sqlite3 connection cannot be used here",
            str(error),
            "pass one that is open and of this thread",
        ) from error
    return ConnectionStanding.FRESH if begins_itself else ConnectionStanding.ALONE


def _same_file(found: str, wanted: Path) -> bool:
    # By stat alone: opening and closing the file here would drop the locks that this process holds on it.
    try:
        return bool(found) and wanted.samefile(found)
    except OSError:
        return False


def _no_workers(name: str) -> UnusableConnection:
    return UnusableConnection(
        f"{name!r} works on worker rows, which this connection does not see",
        "on SQLite they lie in a second file",
        "run it without connection=",
    )
