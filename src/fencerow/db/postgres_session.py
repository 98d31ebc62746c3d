"""One open transaction of ours on a PostgreSQL connection: statements by name, each wait for the server watched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, BaseConnection, Connection, Cursor
from psycopg import errors as pg
from psycopg.pq import TransactionStatus

from fencerow.db.faults import not_permitted, translated
from fencerow.db.held import HeldConnection
from fencerow.db.left_out import left_out, refuse_fewer
from fencerow.db.prepared import TAKES_TWO, PreparedMessage, PreparedStatements, values
from fencerow.db.preparing import IN_ORDER
from fencerow.db.queries import Queries, Query, pyformat, written
from fencerow.db.run import Operation, Rows, Statement, arun, run
from fencerow.db.strikes import sheltered
from fencerow.db.watchdog import Watched

T = TypeVar("T")


class PostgresSession:
    """One open transaction of ours on a sync connection."""

    def __init__(
        self,
        connection: Connection[Any],
        queries: Queries,
        watched: Watched,
        *,
        prepare: bool = False,
        in_order: bool = False,
    ) -> None:
        """`in_order`: its one statement is alone, and is told how to walk with it."""
        self.connection = connection
        self._in_order = in_order and TAKES_TWO
        self._prepare = prepare
        self._queries = queries
        self._watched = watched

    @property
    def is_open(self) -> bool:
        """Whether nobody has ended it by hand."""
        return is_in_transaction(self.connection)

    def flush(self) -> None:
        """Nothing is kept back."""

    @sheltered
    def run(self, operation: Operation[T]) -> T:
        with translated():
            return run(operation.start(), self.execute)

    def execute(self, statement: Statement) -> Rows:
        query = statement.query or self._queries[statement.name]
        if query.copies:
            return self._copy(query, statement)
        rows: Rows = []
        try:
            for text in query.statements:
                self._watched.busy()
                sent: Any = pyformat(written(text, statement.params) if query.spells else text)
                if self._in_order:
                    cursor = self._told(sent, statement)
                else:
                    cursor = self.connection.execute(sent, statement.params, prepare=self._prepare)
                if cursor.rownumber is not None:  # there are rows; `description` would make their columns
                    found = cursor.fetchall()
                    rows += _named(query, cursor, found) if query.users else found
        except pg.InsufficientPrivilege as error:
            raise not_permitted(error, self.connection.info.user) from error
        finally:
            self._watched.rest()
        if statement.stores and not rows:
            raise left_out(statement.stores)
        return rows

    def abandon(self) -> None:
        """The server sees its client gone, and rolls back."""
        self._watched.abandon()

    def _told(self, sent: Any, statement: Statement) -> Cursor[Any]:
        """One message, and one transaction to the server: what is set lasts as long as the statement."""
        with self.connection.pipeline():
            self.connection.execute(IN_ORDER)
            return self.connection.execute(sent, statement.params)

    def _copy(self, query: Query, statement: Statement) -> Rows:
        (text,) = query.statements
        try:
            self._watched.busy()
            with self.connection.cursor() as cursor:
                with cursor.copy(text.encode()) as copy:
                    copy.write(statement.params["lines"])
                    self._watched.busy()  # it took what was sent; it has as long again for the rest
                refuse_fewer(cursor.rowcount, statement.stores)
        finally:
            self._watched.rest()
        return []


class AsyncPostgresSession:
    """One open transaction of ours on an async connection."""

    def __init__(
        self,
        connection: AsyncConnection[Any],
        queries: Queries,
        watched: Watched,
        *,
        in_order: bool = False,
    ) -> None:
        """`in_order`: as that of `PostgresSession`."""
        self._in_order = in_order and TAKES_TWO
        self.connection = connection
        self._queries = queries
        self._watched = watched

    @property
    def is_open(self) -> bool:
        """Whether nobody has ended it by hand."""
        return is_in_transaction(self.connection)

    async def aflush(self) -> None:
        """Nothing is kept back."""

    async def arun(self, operation: Operation[T]) -> T:
        with translated():
            return await arun(operation.start(), self.execute)

    async def execute(self, statement: Statement) -> Rows:
        query = statement.query or self._queries[statement.name]
        if query.copies:
            return await self._copy(query, statement)
        rows: Rows = []
        try:
            for text in query.statements:
                self._watched.busy()
                sent: Any = pyformat(written(text, statement.params) if query.spells else text)
                if self._in_order:
                    cursor = await self._told(sent, statement)
                else:
                    cursor = await self.connection.execute(sent, statement.params)
                if cursor.rownumber is not None:  # there are rows; `description` would make their columns
                    found = await cursor.fetchall()
                    rows += _named(query, cursor, found) if query.users else found
        except pg.InsufficientPrivilege as error:
            raise not_permitted(error, self.connection.info.user) from error
        finally:
            self._watched.rest()
        if statement.stores and not rows:
            raise left_out(statement.stores)
        return rows

    def abandon(self) -> None:
        """The server sees its client gone, and rolls back."""
        self._watched.abandon()

    async def _told(self, sent: Any, statement: Statement) -> AsyncCursor[Any]:
        async with self.connection.pipeline():
            await self.connection.execute(IN_ORDER)
            return await self.connection.execute(sent, statement.params)

    async def _copy(self, query: Query, statement: Statement) -> Rows:
        (text,) = query.statements
        try:
            self._watched.busy()
            async with self.connection.cursor() as cursor:
                async with cursor.copy(text.encode()) as copy:
                    await copy.write(statement.params["lines"])
                    self._watched.busy()
                refuse_fewer(cursor.rowcount, statement.stores)
        finally:
            self._watched.rest()
        return []


class PreparedSession:
    """Prepared statements on a connection that is at hand: one alone, or those of a transaction.

    What goes `ahead` of others waits here for the next, and is sent with it in one message.
    """

    __slots__ = ("_ahead", "_held", "_notifies", "_prepared", "_query_of")

    def __init__(
        self,
        held: HeldConnection,
        prepared: PreparedStatements,
        query_of: Callable[[Statement], Query],
        *,
        notifies: bool,
        begins: bool = False,
    ) -> None:
        """`begins`: its first statement begins a transaction of ours."""
        self._ahead: list[tuple[PreparedMessage, Rows]] = (
            [(PreparedMessage(query, []), []) for query in BEGINNING] if begins else []
        )
        self._held = held
        self._prepared = prepared
        self._query_of = query_of
        self._notifies = notifies

    async def execute(self, statement: Statement) -> Rows:
        held = self._held
        try:
            query = self._query_of(statement)
            message = PreparedMessage(query, values(query, statement.params))
            if statement.ahead and TAKES_TWO:
                rows: Rows = []
                self._ahead.append((message, rows))
                return rows
            ahead, self._ahead = self._ahead, []
            rows = await self._prepared.execute(held.wire, message, notifies=self._notifies, ahead=ahead)
        except pg.InsufficientPrivilege as error:
            raise not_permitted(error, held.connection.info.user) from error
        if statement.stores and not rows:
            raise left_out(statement.stores)
        return rows


@contextmanager
def transaction(connection: Connection[Any], watched: Watched, idle_s: float | None = None) -> Iterator[None]:
    """A transaction for user code, which cannot end it. What happens inside is watched by whoever does it.

    With `idle_s` the server ends it when nothing was said in it for so long.
    """
    watched.busy()
    with connection.transaction():
        if idle_s is not None:
            connection.execute(_bound(idle_s))
        watched.rest()
        try:
            yield
        finally:
            watched.busy()


@asynccontextmanager
async def atransaction(
    connection: AsyncConnection[Any], watched: Watched, idle_s: float | None = None
) -> AsyncIterator[None]:
    watched.busy()
    async with connection.transaction():
        if idle_s is not None:
            await connection.execute(_bound(idle_s))
        watched.rest()
        try:
            yield
        finally:
            watched.busy()


@contextmanager
def own_transaction(connection: Connection[Any], watched: Watched, *, in_order: bool) -> Iterator[None]:
    """A transaction of ours alone, which the server ends when this process falls silent in it. See BEGIN.

    `in_order`: its session does not know how our statements are to be planned.
    """
    watched.busy()
    connection.execute(BEGIN_IN_ORDER if in_order else BEGIN)
    watched.rest()
    try:
        yield
    except BaseException:
        watched.busy()
        try:
            connection.rollback()
        except psycopg.Error:
            connection.close()  # what went wrong first is what the caller is told
        raise
    watched.busy()
    connection.execute(COMMIT)


@asynccontextmanager
async def aown_transaction(
    connection: AsyncConnection[Any], watched: Watched, *, in_order: bool, begins: bool = True
) -> AsyncIterator[None]:
    """`own_transaction` in this event loop. `begins`: else its session sends BEGIN with its first statement."""
    if begins:
        watched.busy()
        await connection.execute(BEGIN_IN_ORDER if in_order else BEGIN)
        watched.rest()
    try:
        yield
    except BaseException:
        watched.busy()
        try:
            await connection.rollback()
        except psycopg.Error:
            await connection.close()
        raise
    watched.busy()
    await connection.execute(COMMIT)


def is_in_transaction(connection: BaseConnection[Any]) -> bool:
    """Whether a transaction is open on it, be it a failed one."""
    return connection.info.transaction_status != TransactionStatus.IDLE


def _bound(idle_s: float) -> bytes:
    return f"SET LOCAL idle_in_transaction_session_timeout = {round(idle_s * 1000)}".encode()


# A process that is stopped (SIGSTOP, a laptop that sleeps, a blocked event loop) keeps its connections, and with them
# the locks of a transaction that is open there. Ours compute for parts of a second between two statements (a tick of
# schedules decides for a tenth of one, and leaves the rest to the next), so whoever is silent for so long has come to a
# stand, and the server takes the locks from it. It is said with BEGIN, in one message: it costs no round trip and ends
# with the transaction, so it holds behind a pooler too.
IDLE_S = 10.0
BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED; " + _bound(IDLE_S)
BEGINNING = tuple(  # the same for a message of prepared statements
    Query("begin", (text.decode(),), ()) for text in BEGIN.split(b"; ")
)
BEGIN_IN_ORDER = BEGIN + b"; SET LOCAL enable_seqscan = off; SET LOCAL seq_page_cost = 0; SET LOCAL jit = off"
# Not `connection.commit()`: PgBouncer passes the server's last word on and adds its own, and where psycopg expects one
# answer it then tells that there were two, and not what they say.
COMMIT = "COMMIT"


def _named(query: Query, cursor: Cursor[Any] | AsyncCursor[Any], rows: Rows) -> Rows:
    return query.with_names([column.name for column in cursor.description or ()], rows)
