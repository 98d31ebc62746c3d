"""One plain connection to a database of the user's: operations as transactions on it, and scripts as they stand.

No pool, no watchdog, nothing of Fencerow's tables: what runs here may take hours, and belongs to the user.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol, TypeVar

from psycopg import IsolationLevel, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from fencerow.db.faults import CONTENTION, connection_lost
from fencerow.db.filesystem import refuse_network
from fencerow.db.probe import connect_postgres
from fencerow.db.queries import Queries, pyformat
from fencerow.db.run import Operation, Rows, Statement, run

T = TypeVar("T")

CONNECTION_SETTINGS = {
    "prepare_threshold": None,  # a pooler in transaction mode may stand in between
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "application_name": "fencerow-migrator",
}
CANCEL_S = 5.0
# A migrator that is stopped between two statements must not keep what it has locked. A function of the user's may
# compute for as long as it likes.
BOUND = "SET LOCAL idle_in_transaction_session_timeout = 60000"
UNBOUND = "SET LOCAL idle_in_transaction_session_timeout = 0"


class Raw(Statement, kw_only=True):
    """A statement of the user's, sent as it is written after `prefix`; `source` and `line` say where it stands."""

    source: str = ""
    line: int = 0
    prefix: str = ""


class Code(Statement, kw_only=True):
    """A function of the user's, called with the driver's connection inside the transaction."""

    source: str = ""
    function: Callable[[Any], object] | None = None


class UserFailed(Exception):
    """A statement or function of the user's raised; the error itself is the cause."""

    def __init__(self, statement: Raw | Code) -> None:
        super().__init__(statement.name)
        self.statement = statement


class Direct(Protocol):
    """An open connection. One thread at a time uses it; `cancel` may come from any."""

    dialect: str

    def run(self, operation: Operation[T]) -> T:
        """Run an operation: a transaction of its own, or each statement by itself when it is `alone`."""
        ...

    def cancel(self) -> None:
        """Ask the server to give up what is under way."""

    def close(self) -> None: ...


class PostgresDirect:
    """A connection to PostgreSQL, every BEGIN of which says READ COMMITTED and READ WRITE."""

    dialect = "postgres"

    def __init__(
        self, conninfo: str, queries: Queries, *, connect_timeout_s: float, session: str | None = None
    ) -> None:
        settings = CONNECTION_SETTINGS | ({} if session is None else {"application_name": session})
        self.connection = connect_postgres(conninfo, connect_timeout_s, **settings)
        self.connection.isolation_level = IsolationLevel.READ_COMMITTED
        self.connection.read_only = False
        self._queries = queries

    def run(self, operation: Operation[T]) -> T:
        if operation.alone:
            return run(operation.steps(), self.execute)
        with self.connection.transaction():
            self.connection.execute(BOUND)
            return run(operation.steps(), self.execute)

    def execute(self, statement: Statement) -> Rows:
        if isinstance(statement, Raw | Code):
            with _of_the_user(statement):
                return self._users(statement)
        rows: Rows = []
        for text in self._queries[statement.name].statements:
            # A function of the user's may have given the connection another form for its rows.
            cursor = self.connection.cursor(row_factory=tuple_row)
            cursor.execute(sql.SQL(pyformat(text)), statement.params)  # pyright: ignore[reportArgumentType]
            rows += cursor.fetchall() if cursor.description else []
        return rows

    def _users(self, statement: Raw | Code) -> Rows:
        if isinstance(statement, Code):
            assert statement.function is not None
            with self._unbound():
                statement.function(self.connection)
            return []
        assert statement.query is not None
        for text in statement.query.statements:
            self.connection.execute(
                f"{statement.prefix}{text}".encode()
            )  # no parameters: nothing in it is looked at
        return []

    @contextmanager
    def _unbound(self) -> Iterator[None]:
        in_transaction = self.connection.info.transaction_status == TransactionStatus.INTRANS
        if in_transaction:
            self.connection.execute(UNBOUND)
        yield
        if in_transaction:
            self.connection.execute(BOUND)

    def cancel(self) -> None:
        self.connection.cancel_safe(timeout=CANCEL_S)

    def close(self) -> None:
        self.connection.close()


class SqliteDirect:
    """A connection to a SQLite file, made if it is not there. A transaction holds the write lock from its BEGIN."""

    dialect = "sqlite"

    def __init__(self, path: Path, queries: Queries, *, busy_timeout_s: float, writes: bool = True) -> None:
        refuse_network(path)
        mode = "rwc" if writes else "ro"
        self.connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        self._queries = queries

    def run(self, operation: Operation[T]) -> T:
        with nullcontext() if operation.alone else self._transaction(operation.writes):
            return run(operation.steps(), self.execute)

    @contextmanager
    def _transaction(self, writes: str) -> Iterator[None]:
        try:
            self.connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def execute(self, statement: Statement) -> Rows:
        if isinstance(statement, Raw | Code):
            with _of_the_user(statement), self._keeping_transaction():
                return self._users(statement)
        query = self._queries[statement.name]
        params = {name: statement.params[name] for name in query.parameters}
        rows: Rows = []
        for text in query.statements:
            cursor = self.connection.cursor()
            cursor.row_factory = None  # a function of the user's may have given the connection another
            rows += cursor.execute(text, params).fetchall()
        return rows

    def _users(self, statement: Raw | Code) -> Rows:
        if isinstance(statement, Code):
            assert statement.function is not None
            statement.function(self.connection)
            return []
        assert statement.query is not None
        for text in statement.query.statements:
            self.connection.execute(f"{statement.prefix}{text}").fetchall()
        return []

    @contextmanager
    def _keeping_transaction(self) -> Iterator[None]:
        """Refuse what would end our transaction, also `connection.commit()`."""
        if not self.connection.in_transaction:
            yield
            return
        self.connection.set_authorizer(_refuse_transactions)
        try:
            yield
        finally:
            self.connection.set_authorizer(None)

    def cancel(self) -> None:
        self.connection.interrupt()

    def close(self) -> None:
        self.connection.close()


def is_contention(error: BaseException) -> bool:
    """Whether the transaction lost to others and was rolled back, so that it may simply run again."""
    if isinstance(error, sqlite3.OperationalError):
        return (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
    return isinstance(error, CONTENTION)


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone. What was being committed is then in doubt until somebody reads it."""
    return connection_lost(error)


@contextmanager
def _of_the_user(statement: Raw | Code) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if is_contention(error) or is_lost(error):
            raise
        raise UserFailed(statement) from error


def _refuse_transactions(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_OK
