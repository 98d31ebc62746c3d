"""Handlers on SQLAlchemy, sync on psycopg or sqlite3 and async on asyncpg or aiosqlite."""

from __future__ import annotations

import os

from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from fencerow import App, Job

app = App()
ON_SQLITE = os.environ.get("FENCEROW_URL", "").startswith("sqlite")
shop = create_engine("sqlite:///shop.db" if ON_SQLITE else "postgresql+psycopg:///shop")
ashop = create_async_engine(
    "sqlite+aiosqlite:///shop.db" if ON_SQLITE else "postgresql+asyncpg:///shop", poolclass=NullPool
)
COUNT = text("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")
PAY = text(
    "INSERT INTO payments (order_id, made_for) VALUES (:order, :job) ON CONFLICT (made_for) DO NOTHING"
)
TABLES = (
    "CREATE TABLE stock (item TEXT PRIMARY KEY, n INTEGER NOT NULL)",
    "INSERT INTO stock VALUES ('umbrella', 7)",
    "CREATE TABLE payments (order_id INTEGER NOT NULL, made_for TEXT UNIQUE)",
)


def tables(url: str) -> None:
    with shop.begin() as connection:
        for statement in TABLES:
            connection.execute(text(statement))
    shop.dispose()


@app.job
def counter(order: int) -> None:
    with shop.begin() as connection:
        connection.execute(COUNT)  # fault: counter


@app.job
def insert_with_key(job: Job, order: int) -> None:
    with shop.begin() as connection:
        connection.execute(PAY, {"order": order, "job": job.id})


@app.job
async def acounter(order: int) -> None:
    async with ashop.begin() as connection:
        await connection.execute(COUNT)  # fault: acounter


@app.job
async def ainsert_with_key(job: Job, order: int) -> None:
    async with ashop.begin() as connection:
        await connection.execute(PAY, {"order": order, "job": job.id})


@app.job
def swallowed_error(job: Job, order: int) -> None:
    try:
        with shop.begin() as connection:
            connection.execute(PAY, {"order": order, "job": job.id})  # fault: swallowed_error
    except DBAPIError:
        pass
