"""Runs our operations on a connection or session that the user owns: commit is accepted, rollback is never was.

    borrowed(connection, engine).run(store.submit([job]))

The user's open transaction carries the operation, inside a savepoint, so that an error of ours leaves
the transaction as it was. Without an open transaction we do as the driver does: a driver that begins
one by itself (psycopg, sqlite3 and SQLAlchemy by default) has now begun the user's own, which the user
commits; one that does not (asyncpg, and all in autocommit) has the operation committed at once. Submits and
published events are refused there: whoever passes a connection wants them in a transaction.

On PostgreSQL each connection is asked once whether it leads to the engine's database (`known_connections.py`).

A savepoint costs two round trips. PostgreSQL remembers 64 of a transaction cheaply: who submits more than
that in one transaction should submit them in one call.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from fencerow.db.adapters.frame import Lent
from fencerow.db.engine import Engine
from fencerow.db.errors import UnusableConnection
from fencerow.db.run import Operation, arun, run
from fencerow.db.strikes import sheltered

if TYPE_CHECKING:
    from fencerow.db.postgres import PostgresEngine
    from fencerow.db.sqlite import SqliteEngine

T = TypeVar("T")

DJANGO = ("django.ConnectionProxy", "django.DatabaseWrapper", "django.BaseDatabaseWrapper")
PROXIES_MAX = 10  # one around the other
ACCEPTED = (
    "psycopg Connection and AsyncConnection, asyncpg Connection, sqlite3 and aiosqlite Connection, "
    "SQLAlchemy Session, AsyncSession, Connection and AsyncConnection, Django's connection"
)


class Borrowed(Protocol):
    """A lent connection that runs our operations; `run` for sync kinds, `arun` for async ones.

    Errors of the user's own statements and integrity errors reach the caller unchanged. Raised besides
    what the operation raises:

        UnusableConnection: closed, busy, in a failed transaction, or to another database. Nothing was sent.
        ReadOnly: it may not write.
        RetryTransaction: roll the transaction back and run all of it again.
    """

    @property
    def is_async(self) -> bool:
        """Whether it is `arun` that it takes, and not `run`."""
        ...

    def run(self, operation: Operation[T]) -> T: ...

    async def arun(self, operation: Operation[T]) -> T: ...

    def is_open(self) -> bool:
        """Whether a transaction of the user's is open, without asking the database or beginning one."""
        ...


@runtime_checkable
class Wrapping(Protocol):
    """An engine that stands before another one and wants to see what runs on lent connections too."""

    inner: Engine

    def lending(self, borrowed: Borrowed) -> Borrowed: ...


def innermost(engine: Engine) -> Engine:
    """The engine behind all that stand before it."""
    while isinstance(engine, Wrapping):
        engine = engine.inner
    return engine


class SyncBorrowed:
    """A lent sync connection."""

    is_async = False

    def __init__(self, lent: Lent, kind: str, engine: PostgresEngine | None = None) -> None:
        self._lent = lent
        self._kind = kind
        self._engine = engine

    @sheltered
    def run(self, operation: Operation[T]) -> T:
        if self._engine is None:
            return self._run(operation)
        return self._engine.known.run(self._engine, partial(self._run, operation))

    def _run(self, operation: Operation[T]) -> T:
        return run(self._lent.plan(operation), self._lent.send)

    def is_open(self) -> bool:
        return self._lent.is_open()

    async def arun(self, operation: Operation[T]) -> T:  # noqa: ARG002
        raise UnusableConnection(
            f"a {self._kind} is a sync connection",
            "it would block the event loop",
            "use the sync verb, in a thread",
        )


class AsyncBorrowed:
    """A lent async connection."""

    is_async = True

    def __init__(self, lent: Lent, kind: str, engine: PostgresEngine | None = None) -> None:
        self._lent = lent
        self._kind = kind
        self._engine = engine

    def run(self, operation: Operation[T]) -> T:  # noqa: ARG002
        raise needs_await(self._kind)

    async def arun(self, operation: Operation[T]) -> T:
        if self._engine is None:
            return await self._arun(operation)
        return await self._engine.known.arun(self._engine, partial(self._arun, operation))

    async def _arun(self, operation: Operation[T]) -> T:
        return await arun(self._lent.plan(operation), self._lent.send)

    def is_open(self) -> bool:
        return self._lent.is_open()


class SwitchedBorrowed:
    """A SQLAlchemy async object: it runs sync code that awaits its driver underneath."""

    is_async = True

    def __init__(self, lender: Any, engine: Engine, kind: str) -> None:
        self._lender = lender
        self._engine = engine
        self._kind = kind

    def run(self, operation: Operation[T]) -> T:  # noqa: ARG002
        raise needs_await(self._kind)

    async def arun(self, operation: Operation[T]) -> T:
        if not self._engine.traits.has_server:
            return await self._arun(operation)
        engine = cast("PostgresEngine", self._engine)
        return await engine.known.arun(engine, partial(self._arun, operation))

    async def _arun(self, operation: Operation[T]) -> T:
        return cast(T, await self._lender.run_sync(self._run, operation))

    def is_open(self) -> bool:
        from fencerow.db.adapters.lent_sqlalchemy import lent

        sync = getattr(self._lender, "sync_connection", None) or self._lender.sync_session
        return lent(sync, self._engine).is_open()

    def _run(self, sync: Any, operation: Operation[T]) -> T:
        from fencerow.db.adapters.lent_sqlalchemy import lent

        lender = lent(sync, self._engine)
        return run(lender.plan(operation), lender.send)


def needs_await(kind: str) -> UnusableConnection:
    """An async connection was passed to a sync verb."""
    return UnusableConnection(
        f"a {kind} is an async connection",
        "a sync call cannot await it",
        "use the async verb, such as asubmit",
    )


def borrowed(connection: object, engine: Engine) -> Borrowed:
    """Make a user's connection or session run operations for `engine`.

    Nothing is sent yet, and the connection's settings stay as they are, factories and codecs included. Behind a
    transparent proxy, as tracing libraries make them, the connection itself is taken.

    Raises:
        UnusableConnection: it is of no known kind, or of another database than the engine.
    """
    if isinstance(engine, Wrapping):
        return engine.lending(borrowed(connection, engine.inner))
    connection = _unwrapped(connection)
    for name in _class_names(connection):
        match name:
            case "psycopg.Connection" | "psycopg.AsyncConnection":
                return _psycopg(connection, engine, name)
            case "asyncpg.Connection" | "asyncpg.PoolConnectionProxy":
                return _asyncpg(connection, engine, name)
            case "sqlite3.Connection" | "aiosqlite.Connection":
                return _sqlite(connection, engine, name)
            case "sqlalchemy.Session" | "sqlalchemy.Connection" | "sqlalchemy.scoped_session":
                return _sqlalchemy(connection, engine, name)
            case "sqlalchemy.AsyncSession" | "sqlalchemy.AsyncConnection" | "sqlalchemy.async_scoped_session":
                return _async_sqlalchemy(connection, engine, name)
            case _ if name in DJANGO:
                return _django(connection, engine)
            case _:
                continue
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise UnusableConnection(
        f"a {kind} cannot carry a submit", f"accepted are {ACCEPTED}", "pass one of these"
    )


def is_django(connection: object) -> bool:
    """Whether it is a connection of Django's, or the proxy that stands for one."""
    return any(name in DJANGO for name in _class_names(connection))


def _unwrapped(connection: Any) -> Any:
    """The driver's own connection behind the proxy that a tracing library hands out in its place."""
    for _ in range(PROXIES_MAX):
        # A proxy says it is of the class of what it stands for; a connection is of its own.
        if type(connection) is connection.__class__ or getattr(connection, "__wrapped__", None) is None:
            break
        connection = connection.__wrapped__
    return connection


def _class_names(connection: object) -> list[str]:
    return [f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(connection).__mro__]


def _psycopg(connection: Any, engine: Engine, name: str) -> Borrowed:
    from fencerow.db.adapters.lent_psycopg import LentAsyncPsycopg, LentSyncPsycopg

    _same_dialect("postgres", engine, name)
    postgres = cast("PostgresEngine", engine)
    if name == "psycopg.Connection":
        return SyncBorrowed(LentSyncPsycopg(connection, postgres), name, postgres)
    return AsyncBorrowed(LentAsyncPsycopg(connection, postgres), name, postgres)


def _asyncpg(connection: Any, engine: Engine, name: str) -> Borrowed:
    from fencerow.db.adapters.lent_asyncpg import LentAsyncpg

    _same_dialect("postgres", engine, name)
    postgres = cast("PostgresEngine", engine)
    return AsyncBorrowed(LentAsyncpg(connection, postgres), name, postgres)


def _sqlite(connection: Any, engine: Engine, name: str) -> Borrowed:
    from fencerow.db.adapters.lent_sqlite import LentAiosqlite, LentSqlite3

    _same_dialect("sqlite", engine, name)
    if name == "sqlite3.Connection":
        return SyncBorrowed(
            LentSqlite3(cast(sqlite3.Connection, connection), cast("SqliteEngine", engine)), name
        )
    return AsyncBorrowed(LentAiosqlite(connection, cast("SqliteEngine", engine)), name)


def _sqlalchemy(connection: Any, engine: Engine, name: str) -> Borrowed:
    from fencerow.db.adapters.lent_sqlalchemy import dialect_of, lent

    lender = connection.registry() if name.endswith("scoped_session") else connection
    _same_dialect(dialect_of(lender), engine, name)
    postgres = cast("PostgresEngine", engine) if engine.traits.has_server else None
    return SyncBorrowed(lent(lender, engine), name, postgres)


def _async_sqlalchemy(connection: Any, engine: Engine, name: str) -> Borrowed:
    from fencerow.db.adapters.lent_sqlalchemy import dialect_of

    lender = connection.registry() if name.endswith("scoped_session") else connection
    sync = lender.sync_connection if name.endswith("Connection") else lender.sync_session
    if sync is None:
        raise UnusableConnection(
            f"this {name} was not opened", "it must be open", "await engine.connect() first"
        )
    _same_dialect(dialect_of(sync), engine, name)
    return SwitchedBorrowed(lender, engine, name)


def _django(connection: Any, engine: Engine) -> Borrowed:
    from fencerow.db.adapters.lent_django import driver_of

    return borrowed(driver_of(connection), engine)


def _same_dialect(found: str, engine: Engine, name: str) -> None:
    if found != engine.dialect:
        raise UnusableConnection(
            f"a {name} talks to {_title(found)}",
            f"the jobs are kept in {_title(engine.dialect)}",
            "pass a connection to the database of the jobs",
        )


def _title(dialect: str) -> str:
    return {"postgres": "PostgreSQL", "sqlite": "SQLite"}.get(dialect, dialect)
