"""One way for tests to lend a connection of each kind, sync or async: `async with lender.open() as lent`."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
import psycopg

from fencerow.db.borrow import borrowed
from fencerow.db.engine import Engine
from fencerow.db.statement import Operation

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


LENDERS = [
    Lender("psycopg", "postgres", lend_psycopg),
    Lender("psycopg-autocommit", "postgres", lend_psycopg, True, {"autocommit": True}),
    Lender("psycopg-async", "postgres", lend_async_psycopg),
    Lender("psycopg-async-autocommit", "postgres", lend_async_psycopg, True, {"autocommit": True}),
    Lender("sqlite3", "sqlite", lend_sqlite3),
    Lender("sqlite3-immediate", "sqlite", lend_sqlite3, False, {"isolation_level": "IMMEDIATE"}),
    Lender("sqlite3-autocommit", "sqlite", lend_sqlite3, True, {"isolation_level": None}),
    Lender("aiosqlite", "sqlite", lend_aiosqlite),
    Lender("aiosqlite-autocommit", "sqlite", lend_aiosqlite, True, {"isolation_level": None}),
]


def place(engine: Any) -> str:
    """Where the engine's database is, as a driver takes it."""
    return str(engine.path) if isinstance(getattr(engine, "path", None), Path) else str(engine.conninfo)
