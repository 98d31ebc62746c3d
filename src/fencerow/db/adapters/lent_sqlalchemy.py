"""A lent SQLAlchemy Session or Connection, over any of its PostgreSQL and SQLite drivers.

Everything is sent by `session.execute(text(...))`, so that SQLAlchemy's events, echo and pool see it; the
driver's connection below is only looked at. The async twins are run by their own `run_sync`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import Connection, TextClause, bindparam, text
from sqlalchemy.exc import DBAPIError, InvalidRequestError, PendingRollbackError
from sqlalchemy.orm import Session
from sqlalchemy.types import NullType

from fencerow.db.adapters.frame import (
    ConnectionStanding,
    Lent,
    SentText,
    failed,
    lost,
    named,
)
from fencerow.db.adapters.lent_postgres import LentPostgres, is_lost, server_fault, typed
from fencerow.db.adapters.lent_sqlite import LentSqlite, standing_of
from fencerow.db.engine import Engine
from fencerow.db.errors import FencerowError, UnusableConnection
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import TOKEN
from fencerow.db.run import Rows
from fencerow.db.sqlite import SqliteEngine

DIALECTS = {"postgresql": "postgres", "sqlite": "sqlite"}
INERROR = 3  # libpq's number for a failed transaction, the same in psycopg and psycopg2
IDLE = 0


class Alchemy(Lent):
    """What a Session or Connection is asked, over whichever engine."""

    kind = "SQLAlchemy connection"
    _lender: Session | Connection

    def is_open(self) -> bool:
        # Asked first: the standing of a session without a transaction would begin one.
        return bool(self._lender.in_transaction()) and super().is_open()


class LentPostgresAlchemy(Alchemy, LentPostgres):
    """SQLAlchemy over psycopg, psycopg2 or asyncpg."""

    def __init__(self, lender: Session | Connection, engine: PostgresEngine) -> None:
        self._lender = lender
        self.queries, self.known = engine.queries, engine.known

    def driver(self) -> object:
        below: Any = _connection(self._lender).connection
        return below.driver_connection

    def standing(self) -> ConnectionStanding:
        with misuse_explained(self.kind):
            below: Any = _connection(self._lender).connection
            status = transaction_status(below.driver_connection)
            if status == INERROR:
                raise failed(self.kind)
            # SQLAlchemy begins by itself, except with isolation_level="AUTOCOMMIT".
            return (
                ConnectionStanding.ALONE
                if status == IDLE and below.dbapi_connection.autocommit
                else ConnectionStanding.OPEN
            )

    def send(self, sent: SentText) -> Rows:
        written = sent.text if sent.users else typed(sent.text, sent.parameters, sent.params)
        return _executed(self._lender, sent, written)

    def fault(self, error: BaseException, standing: ConnectionStanding) -> FencerowError | None:
        if (isinstance(error, DBAPIError) and error.connection_invalidated) or is_lost(error):
            return lost(standing, error)
        return _misuse(error, self.kind) or server_fault(error, self.kind)


class LentSqliteAlchemy(Alchemy, LentSqlite):
    """SQLAlchemy over sqlite3 or aiosqlite."""

    def __init__(self, lender: Session | Connection, engine: SqliteEngine) -> None:
        super().__init__(engine)
        self._lender = lender

    def standing(self) -> ConnectionStanding:
        with misuse_explained(self.kind):
            below: Any = _connection(self._lender).connection
            return standing_of(below.driver_connection)

    def send(self, sent: SentText) -> Rows:
        return _executed(self._lender, sent, sent.text)

    def fault(self, error: BaseException, standing: ConnectionStanding) -> FencerowError | None:
        return _misuse(error, self.kind) or super().fault(error, standing)


def lent(lender: Session | Connection, engine: Engine) -> Lent:
    """The lender for the engine's dialect."""
    if isinstance(engine, SqliteEngine):
        return LentSqliteAlchemy(lender, engine)
    return LentPostgresAlchemy(lender, cast("PostgresEngine", engine))


def dialect_of(lender: Session | Connection) -> str:
    """Which of our dialects the lender talks, or SQLAlchemy's name of another.

    Raises:
        UnusableConnection: a session that is bound to several databases, or to none.
    """
    with misuse_explained("SQLAlchemy session"):
        bind = lender.get_bind() if isinstance(lender, Session) else lender
        return DIALECTS.get(bind.dialect.name, bind.dialect.name)


@contextmanager
def misuse_explained(kind: str) -> Iterator[None]:
    """Say which object cannot be used when SQLAlchemy refuses it."""
    try:
        yield
    except InvalidRequestError as error:
        raise (_misuse(error, kind) or error) from error


def _misuse(error: BaseException, kind: str) -> UnusableConnection | None:
    if isinstance(error, PendingRollbackError):
        return failed(kind)
    if not isinstance(error, InvalidRequestError):
        return None
    return UnusableConnection(
        f"this {kind} cannot be used",
        str(error.args[0]) if error.args else type(error).__name__,
        "pass one that is open and bound to the database of the jobs, such as session.connection(...)",
    )


def _connection(lender: Session | Connection) -> Connection:
    return lender.connection() if isinstance(lender, Session) else lender


def transaction_status(driver: Any) -> int | None:
    """libpq's transaction status; asyncpg tells only whether there is a transaction."""
    if hasattr(driver, "is_in_transaction"):
        return None if driver.is_in_transaction() else IDLE
    return int(driver.info.transaction_status)


def _executed(lender: Session | Connection, sent: SentText, written: str) -> Rows:
    clause = _clause(written, sent.parameters)
    result: Any = lender.execute(clause, {name: sent.params[name] for name in sent.parameters})
    if not result.returns_rows:
        return []
    return named(sent, list(result.keys()), [tuple(row) for row in result.fetchall()])


@lru_cache(maxsize=1024)
def _clause(written: str, parameters: tuple[str, ...]) -> TextClause:
    """`text()` with all colons that mark no parameter escaped, and with parameters that go to the driver as they are.

    Without NullType SQLAlchemy would guess from the first value, and cast a large number to INTEGER.
    """
    escaped = TOKEN.sub(lambda match: match[0] if match[1] else match[0].replace(":", "\\:"), written)
    present = [name for name in parameters if any(match[1] == name for match in TOKEN.finditer(written))]
    return text(escaped).bindparams(*(bindparam(name, type_=NullType()) for name in present))
