"""Handlers on asyncpg, each with one fault at the line that says so, and each mended."""

from __future__ import annotations

import asyncpg

from fencerow import App, Job
from tests.proof.check.handlers.on_psycopg import SHOP, tables

__all__ = ["tables"]

app = App()


@app.job
async def insert_without_key(order: int) -> None:
    shop = await asyncpg.connect(SHOP)
    await shop.execute("INSERT INTO payments (order_id) VALUES ($1)", order)  # fault: insert_without_key
    await shop.close()


@app.job
async def insert_with_key(job: Job, order: int) -> None:
    shop = await asyncpg.connect(SHOP)
    await shop.execute(
        "INSERT INTO payments (order_id, made_for) VALUES ($1, $2) ON CONFLICT (made_for) DO NOTHING",
        order,
        job.id,
    )
    await shop.close()


@app.job
async def read_then_write(order: int) -> None:
    shop = await asyncpg.connect(SHOP)
    async with shop.transaction():
        status = await shop.fetchval(  # read: read_then_write
            "SELECT status FROM orders WHERE id = $1", order
        )
        if status == "new":
            await shop.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")  # fault: read_then_write
            await shop.execute("UPDATE orders SET status = 'paid' WHERE id = $1", order)
    await shop.close()


@app.job
async def read_for_update(order: int) -> None:
    shop = await asyncpg.connect(SHOP)
    async with shop.transaction():
        status = await shop.fetchval("SELECT status FROM orders WHERE id = $1 FOR UPDATE", order)
        if status == "new":
            await shop.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")
            await shop.execute("UPDATE orders SET status = 'paid' WHERE id = $1", order)
    await shop.close()


@app.job
async def swallowed_error(job: Job, order: int) -> None:
    shop = await asyncpg.connect(SHOP)
    try:
        await shop.execute(  # fault: swallowed_error
            "INSERT INTO payments (order_id, made_for) VALUES ($1, $2) ON CONFLICT (made_for) DO NOTHING",
            order,
            job.id,
        )
    except (asyncpg.PostgresError, asyncpg.InterfaceError):
        pass
    finally:
        shop.terminate()
