"""One way for tests to lend a connection of each kind, sync or async: `async with lender.open() as lent`."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import aiosqlite
import asyncpg
import psycopg
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from fencerow.db.borrow import borrowed
from fencerow.db.engine import Engine
from fencerow.db.run import Operation
from fencerow_proof.servers.pgbouncer import is_pooled

T = TypeVar("T")

MINE = {"postgres": "fencerow.mine", "sqlite": "mine"}


@dataclass
class Loan:
    """A user's connection in a test: the few things a user does with it, sync kinds called directly."""

    connection: Any
    engine: Engine
    asynchronous: bool
    execute: Callable[[str], Any]
    commit: Callable[[], Any]
    rollback: Callable[[], Any]
    autocommit: bool = False

    @property
    def table(self) -> str:
        """A table of the user's own, with one column n."""
        return MINE[self.engine.dialect]

    async def run(self, operation: Operation[T]) -> T:
        loan = borrowed(self.connection, self.engine)
        return await loan.arun(operation) if self.asynchronous else loan.run(operation)

    async def sql(self, text: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = await settled(self.execute(text))
        return rows

    async def begin(self) -> None:
        """Open the user's transaction by a write of the user's own."""
        if self.autocommit:
            await self.sql("BEGIN")
        await self.sql(f"INSERT INTO {self.table} VALUES (1)")

    async def snapshot(self, level: str) -> None:
        """Open the user's transaction at an isolation level, and let it see."""
        await self.sql(
            f"BEGIN ISOLATION LEVEL {level}"
            if self.autocommit
            else f"SET TRANSACTION ISOLATION LEVEL {level}"
        )
        await self.sql(f"SELECT n FROM {self.table}")

    async def end(self, verb: str) -> None:
        """COMMIT or ROLLBACK the user's transaction, as a user of this kind does."""
        if self.autocommit:
            await self.sql(verb)
        else:
            await (self.accept() if verb == "COMMIT" else self.forget())

    async def accept(self) -> None:
        await settled(self.commit())

    async def forget(self) -> None:
        await settled(self.rollback())


@dataclass(frozen=True)
class Lender:
    """A kind of connection. `autocommit`: without an open transaction the operation is committed at once."""

    name: str
    dialect: str
    lend: Callable[..., AbstractAsyncContextManager[Loan]]
    autocommit: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def open(self, engine: Any, where: str) -> AbstractAsyncContextManager[Loan]:
        return self.lend(engine, where, **self.options)


async def settled(value: Any) -> Any:
    return await value if hasattr(value, "__await__") else value


@asynccontextmanager
async def lend_psycopg(engine: Engine, where: str, **options: Any) -> AsyncIterator[Loan]:
    connection = psycopg.connect(where, **options)

    def execute(text: str) -> list[Any]:
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []

    try:
        yield Loan(connection, engine, False, execute, connection.commit, connection.rollback)
    finally:
        connection.close()


@asynccontextmanager
async def lend_async_psycopg(engine: Engine, where: str, **options: Any) -> AsyncIterator[Loan]:
    connection = await psycopg.AsyncConnection.connect(where, **options)

    async def execute(text: str) -> list[Any]:
        cursor = await connection.execute(text)
        return await cursor.fetchall() if cursor.description else []

    try:
        yield Loan(connection, engine, True, execute, connection.commit, connection.rollback)
    finally:
        await connection.close()


@asynccontextmanager
async def lend_asyncpg(engine: Engine, where: str, **options: Any) -> AsyncIterator[Loan]:
    connection = await asyncpg.connect(where, **options, **_unprepared(where))
    async with asynccontextmanager(_asyncpg_loan)(engine, connection) as loan:
        yield loan
    await connection.close()


@asynccontextmanager
async def lend_pooled_asyncpg(engine: Engine, where: str, **options: Any) -> AsyncIterator[Loan]:
    async with (
        asyncpg.create_pool(where, min_size=0, max_size=1, **options, **_unprepared(where)) as pool,
        pool.acquire() as connection,
        asynccontextmanager(_asyncpg_loan)(engine, connection) as loan,
    ):
        yield loan


def _unprepared(where: str) -> dict[str, Any]:
    """What users of asyncpg must set behind a pooler in transaction mode."""
    return {"statement_cache_size": 0} if is_pooled(where) else {}


async def _asyncpg_loan(engine: Engine, connection: Any) -> AsyncIterator[Loan]:
    async def nothing() -> None:
        """asyncpg is in autocommit: there is no transaction to end by a method."""

    yield Loan(connection, engine, True, connection.fetch, nothing, nothing)


@asynccontextmanager
async def lend_sqlite3(engine: Engine, where: str, **options: Any) -> AsyncIterator[Loan]:
    connection = sqlite3.connect(where, timeout=0.2, **options)

    def execute(text: str) -> list[Any]:
        return list(connection.execute(text).fetchall())

    try:
        yield Loan(connection, engine, False, execute, connection.commit, connection.rollback)
    finally:
        connection.close()


@asynccontextmanager
async def lend_aiosqlite(engine: Engine, where: str, **options: Any) -> AsyncIterator[Loan]:
    async with aiosqlite.connect(where, timeout=0.2, **options) as connection:

        async def execute(text: str) -> list[Any]:
            return list(await connection.execute_fetchall(text))

        yield Loan(connection, engine, True, execute, connection.commit, connection.rollback)


def alchemy_url(driver: str, where: str) -> str:
    if driver in ("sqlite", "sqlite+aiosqlite"):
        return f"{driver}:///{where}"
    return where.replace("postgresql://", f"{driver}://", 1)


def alchemy_connect_args(driver: str, where: str) -> dict[str, Any]:
    """What docs/postgresql.md tells a user of SQLAlchemy to say where a pooler stands before the server."""
    if not driver.startswith("postgresql") or not is_pooled(where):
        return {}
    if driver.endswith("asyncpg"):
        return {
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"__asyncpg_{uuid4()}__",
        }
    return {"prepare_threshold": None} if driver.endswith("psycopg") else {}


@asynccontextmanager
async def lend_alchemy(
    engine: Engine, where: str, driver: str, session: bool = True, **options: Any
) -> AsyncIterator[Loan]:
    options.setdefault("connect_args", alchemy_connect_args(driver, where))
    made = create_engine(alchemy_url(driver, where), poolclass=NullPool, **options)
    lender: Any = Session(made) if session else made.connect()

    def execute(sql: str) -> list[Any]:
        result = lender.execute(text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    try:
        yield Loan(lender, engine, False, execute, lender.commit, lender.rollback)
    finally:
        lender.close()


@asynccontextmanager
async def lend_async_alchemy(
    engine: Engine, where: str, driver: str, session: bool = True, **options: Any
) -> AsyncIterator[Loan]:
    options.setdefault("connect_args", alchemy_connect_args(driver, where))
    made = create_async_engine(alchemy_url(driver, where), poolclass=NullPool, **options)
    lender: Any = AsyncSession(made) if session else await made.connect()

    async def execute(sql: str) -> list[Any]:
        result = await lender.execute(text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    try:
        yield Loan(lender, engine, True, execute, lender.commit, lender.rollback)
    finally:
        await lender.close()


def alchemy(name: str, dialect: str, driver: str, **options: Any) -> Lender:
    """A SQLAlchemy session, or connection, over a driver."""
    awaits = "async" in name
    quick = options.get("isolation_level") == "AUTOCOMMIT"
    return Lender(
        name, dialect, lend_async_alchemy if awaits else lend_alchemy, quick, {"driver": driver, **options}
    )


LENDERS = [
    Lender("psycopg", "postgres", lend_psycopg),
    Lender("psycopg-autocommit", "postgres", lend_psycopg, True, {"autocommit": True}),
    Lender("psycopg-async", "postgres", lend_async_psycopg),
    Lender("psycopg-async-autocommit", "postgres", lend_async_psycopg, True, {"autocommit": True}),
    Lender("asyncpg", "postgres", lend_asyncpg, True),
    Lender("asyncpg-pool", "postgres", lend_pooled_asyncpg, True),
    Lender("sqlite3", "sqlite", lend_sqlite3),
    Lender("sqlite3-immediate", "sqlite", lend_sqlite3, False, {"isolation_level": "IMMEDIATE"}),
    Lender("sqlite3-autocommit", "sqlite", lend_sqlite3, True, {"isolation_level": None}),
    Lender("aiosqlite", "sqlite", lend_aiosqlite),
    Lender("aiosqlite-autocommit", "sqlite", lend_aiosqlite, True, {"isolation_level": None}),
    alchemy("session-psycopg", "postgres", "postgresql+psycopg"),
    alchemy("session-psycopg2", "postgres", "postgresql+psycopg2"),
    alchemy("connection-psycopg", "postgres", "postgresql+psycopg", session=False),
    alchemy(
        "connection-psycopg2-autocommit", "postgres", "postgresql+psycopg2", isolation_level="AUTOCOMMIT"
    ),
    alchemy("async-session-psycopg", "postgres", "postgresql+psycopg"),
    alchemy("async-session-asyncpg", "postgres", "postgresql+asyncpg"),
    alchemy("async-connection-asyncpg", "postgres", "postgresql+asyncpg", session=False),
    alchemy(
        "async-session-asyncpg-autocommit", "postgres", "postgresql+asyncpg", isolation_level="AUTOCOMMIT"
    ),
    alchemy("session-sqlite", "sqlite", "sqlite"),
    alchemy("connection-sqlite-autocommit", "sqlite", "sqlite", session=False, isolation_level="AUTOCOMMIT"),
    alchemy("async-session-aiosqlite", "sqlite", "sqlite+aiosqlite"),
    alchemy("async-connection-aiosqlite", "sqlite", "sqlite+aiosqlite", session=False),
]

if sys.version_info >= (3, 12):
    LENDERS += [
        Lender("sqlite3-new-autocommit", "sqlite", lend_sqlite3, True, {"autocommit": True}),
        Lender("sqlite3-new-transactions", "sqlite", lend_sqlite3, False, {"autocommit": False}),
    ]

# What depends on the connection alone is asked of all kinds, in test_borrow.py. All else is asked of one kind of each
# driver, with and without SQLAlchemy.
OF_EACH_DRIVER = [
    lender
    for lender in LENDERS
    if lender.name
    in (
        "psycopg",
        "psycopg-async-autocommit",
        "asyncpg",
        "session-psycopg2",
        "async-session-asyncpg",
        "sqlite3",
        "aiosqlite-autocommit",
        "session-sqlite",
    )
]


def place(engine: Any) -> str:
    """Where the engine's database is, as a driver takes it."""
    return str(engine.path) if isinstance(getattr(engine, "path", None), Path) else str(engine.conninfo)
