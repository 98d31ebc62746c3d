"""Handlers on sqlite3, each with one fault at the line that says so, and each mended."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fencerow import App, Job
from tests.proof.check.handlers import outside

app = App()
SHOP = "shop.db"  # a check leads it to a file of its own

TABLES = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL, charged INTEGER NOT NULL DEFAULT 0);
INSERT INTO orders VALUES (1, 'new', 0);
CREATE TABLE payments (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, made_for TEXT UNIQUE);
CREATE TABLE stock (item TEXT PRIMARY KEY, n INTEGER NOT NULL);
INSERT INTO stock VALUES ('umbrella', 7);
CREATE TABLE chunks (source TEXT NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE reports (order_id INTEGER PRIMARY KEY, line TEXT NOT NULL);
CREATE TABLE meta (version INTEGER NOT NULL);
INSERT INTO meta VALUES (1);
"""


def tables(url: str) -> None:
    """In the shop's own file, and what `job.transaction()` writes in the file of the jobs."""
    for file in (SHOP, url.removeprefix("sqlite:///")):
        connection = sqlite3.connect(file)
        connection.executescript(TABLES)
        connection.close()


@contextmanager
def shop(*, autocommit: bool = False) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(SHOP)
    if autocommit:
        connection.isolation_level = None
    try:
        with connection:
            yield connection
    finally:
        connection.close()


@app.job
def sent(order: int) -> None:
    """What others submit."""


@app.job
def insert_without_key(order: int) -> None:
    with shop() as there:
        there.execute("INSERT INTO payments (order_id) VALUES (?)", [order])  # fault: insert_without_key


@app.job
def insert_with_key(job: Job, order: int) -> None:
    with shop() as there:
        there.execute(
            "INSERT INTO payments (order_id, made_for) VALUES (?, ?) ON CONFLICT (made_for) DO NOTHING",
            [order, job.id],
        )


@app.job
def counter(order: int) -> None:
    with shop() as there:
        there.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")  # fault: counter


@app.job
def counter_mended(job: Job, order: int) -> None:
    with job.transaction() as there:
        there.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")


@app.job
def call_before_record(order: int) -> None:
    with shop(autocommit=True) as there:
        row = there.execute("SELECT charged FROM orders WHERE id = ?", [order]).fetchone()
        if row == (0,):
            outside.charge(order)  # fault: call_before_record
            there.execute("UPDATE orders SET charged = 1 WHERE id = ?", [order])


@app.job
def call_with_key(job: Job, order: int) -> None:
    with shop(autocommit=True) as there:
        row = there.execute("SELECT charged FROM orders WHERE id = ?", [order]).fetchone()
        if row == (0,):
            outside.charge(order, key=job.id)
            there.execute("UPDATE orders SET charged = 1 WHERE id = ?", [order])


@app.job
def record_before_call(job: Job, order: int) -> None:
    with shop(autocommit=True) as there:
        won = there.execute("UPDATE orders SET charged = 1 WHERE id = ? AND charged = 0", [order]).rowcount
        if won:
            outside.charge(order, key=job.id)  # fault: record_before_call


@app.job
def status_after_effect(order: int) -> None:
    with shop(autocommit=True) as there:
        row = there.execute("SELECT status FROM orders WHERE id = ?", [order]).fetchone()
        if row == ("new",):
            there.execute("INSERT INTO payments (order_id) VALUES (?)", [order])  # fault: status_after_effect
            there.execute("UPDATE orders SET status = 'paid' WHERE id = ?", [order])


@app.job
def status_with_effect(order: int) -> None:
    with shop() as there:
        moved = there.execute("UPDATE orders SET status = 'paid' WHERE id = ? AND status = 'new'", [order])
        if moved.rowcount:
            there.execute("INSERT INTO payments (order_id) VALUES (?)", [order])


@app.job
def swallowed_error(job: Job, order: int) -> None:
    try:
        with shop() as there:
            there.execute(  # fault: swallowed_error
                "INSERT INTO payments (order_id, made_for) VALUES (?, ?) ON CONFLICT (made_for) DO NOTHING",
                [order, job.id],
            )
    except sqlite3.Error:
        logging.getLogger("shop").warning("no payment for %s", order)


@app.job
def read_then_write(order: int) -> None:
    with shop() as there:
        row = there.execute(  # read: read_then_write
            "SELECT status FROM orders WHERE id = ?", [order]
        ).fetchone()
        if row == ("new",):
            there.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")  # fault: read_then_write
            there.execute("UPDATE orders SET status = 'paid' WHERE id = ?", [order])


@app.job
def read_for_update(order: int) -> None:
    with shop() as there:
        there.execute("BEGIN IMMEDIATE")
        row = there.execute("SELECT status FROM orders WHERE id = ?", [order]).fetchone()
        if row == ("new",):
            there.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")
            there.execute("UPDATE orders SET status = 'paid' WHERE id = ?", [order])


@app.job
def delete_then_insert(order: int) -> None:
    with shop(autocommit=True) as there:
        there.execute("DELETE FROM chunks WHERE source = 'a.pdf'")
        for part in (1, 2):
            there.execute(  # fault: delete_then_insert
                "INSERT INTO chunks VALUES ('a.pdf', ?, 'text')",
                [part],
            )


@app.job
def replace_under_lock(order: int) -> None:
    with shop() as there:
        there.execute("BEGIN IMMEDIATE")
        there.execute("DELETE FROM chunks WHERE source = 'a.pdf'")
        for part in (1, 2):
            there.execute("INSERT INTO chunks VALUES ('a.pdf', ?, 'text')", [part])


@app.job
def replace_in_two(order: int) -> None:
    with shop(autocommit=True) as there:
        there.execute("DELETE FROM chunks WHERE source = 'a.pdf'")  # fault: replace_in_two
        there.execute("INSERT INTO chunks VALUES ('a.pdf', 1, 'text')")


@app.job
def file_appended(order: int) -> None:
    with shop() as there:
        there.execute("SELECT status FROM orders WHERE id = ?", [order])
    with Path("report.txt").open("a") as file:  # fault: file_appended
        file.write(f"{order}\n")


@app.job
def row_written(order: int) -> None:
    with shop() as there:
        there.execute(
            "INSERT INTO reports VALUES (?, 'paid') ON CONFLICT (order_id) DO UPDATE SET line = excluded.line",
            [order],
        )


@app.job
def schema_without_lock(order: int) -> None:
    with shop() as there:
        row = there.execute("SELECT version FROM meta").fetchone()
        if row == (1,):
            there.execute("ALTER TABLE stock ADD COLUMN price INTEGER")  # fault: schema_without_lock
            there.execute("UPDATE meta SET version = 2")


@app.job
def schema_under_lock(order: int) -> None:
    with shop() as there:
        there.execute("BEGIN IMMEDIATE")
        row = there.execute("SELECT version FROM meta").fetchone()
        if row == (1,):
            there.execute("ALTER TABLE stock ADD COLUMN price INTEGER")
            there.execute("UPDATE meta SET version = 2")


@app.job
def submit_without_key(order: int) -> None:
    sent.submit(order)  # fault: submit_without_key


@app.job
def submit_with_key(job: Job, order: int) -> None:
    sent.using(key=job.id).submit(order)


@app.job
def next_number(job: Job, order: int) -> None:
    """A second run of the job does nothing, but two jobs may get one number."""
    with shop() as there:
        (last,) = there.execute("SELECT coalesce(max(order_id), 0) FROM payments").fetchone()
        there.execute(  # fault: next_number
            "INSERT INTO payments (order_id, made_for) VALUES (?, ?) ON CONFLICT (made_for) DO NOTHING",
            [last + 1, job.id],
        )


@app.job
def next_number_at_once(job: Job, order: int) -> None:
    with shop() as there:
        there.execute(
            "INSERT INTO payments (order_id, made_for) SELECT coalesce(max(order_id), 0) + 1, ? FROM payments"
            " WHERE true ON CONFLICT (made_for) DO NOTHING",
            [job.id],
        )
