"""Jobs and your own tables in one database: neither can be there without the other.

Submit with `connection=`, and the job exists if your transaction commits. Write in `job.transaction()`, and what
the handler wrote commits together with the job's success, however often an attempt had to start again.
"""

import asyncio
import sqlite3

from fencerow import App, Backoff, Handle, Job

FILE = "own_transaction.db"
app = App(f"sqlite:///{FILE}")


@app.job(attempts_max=3, backoff=Backoff(base_s=0.1))
async def invoice(job: Job, order_id: int) -> str:
    """The first attempt fails after its write; the write is undone with it."""
    async with job.transaction() as connection:
        connection.execute("INSERT INTO invoices (order_id) VALUES (?)", (order_id,))
        if job.failures == 0:
            raise ConnectionError("the printer is out of paper")
    return f"invoice for order {order_id}"


def order(shop: sqlite3.Connection, item: str, *, paid: bool) -> Handle[str]:
    """Take an order; its invoice is a job that exists if, and only if, the order does."""
    with shop:
        order_id = shop.execute("INSERT INTO orders (item) VALUES (?) RETURNING id", (item,)).fetchone()[0]
        handle = invoice.using(connection=shop).submit(order_id)
        if not paid:
            raise ValueError(f"{item} was not paid")
    return handle


async def main() -> None:
    app.check_or_create()
    shop = sqlite3.connect(FILE)
    shop.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)")
    shop.execute("CREATE TABLE IF NOT EXISTS invoices (order_id INTEGER)")

    try:
        order(shop, "umbrella", paid=False)
    except ValueError as error:
        print("rolled back:", error)
    print("jobs:", len(await app.client.alist_jobs()))

    handle = order(shop, "lamp", paid=True)
    print("jobs:", len(await app.client.alist_jobs()))
    async with app, app.worker():
        print(await handle.aresult(timeout_s=20))
    print("invoices:", shop.execute("SELECT count(*) FROM invoices").fetchone()[0])
    shop.close()


asyncio.run(main())
