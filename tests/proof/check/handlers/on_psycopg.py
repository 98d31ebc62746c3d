"""Handlers on psycopg, each with one fault at the line that says so, and each mended."""

from __future__ import annotations

import logging
from pathlib import Path

import psycopg

from fencerow import App, Job
from tests.proof.check.handlers import outside

app = App()
SHOP = "postgresql:///shop"  # a check leads it to its scratch database

TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL, charged bool NOT NULL DEFAULT false);
INSERT INTO orders VALUES (1, 'new');
CREATE TABLE payments (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id int NOT NULL, made_for text UNIQUE);
CREATE TABLE stock (item text PRIMARY KEY, n int NOT NULL);
INSERT INTO stock VALUES ('umbrella', 7);
CREATE TABLE chunks (source text NOT NULL, part int NOT NULL, body text NOT NULL);
CREATE TABLE words (source text NOT NULL, t text);
CREATE TABLE reports (order_id int PRIMARY KEY, line text NOT NULL);
CREATE TABLE meta (version int NOT NULL);
INSERT INTO meta VALUES (1);
"""


def tables(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLES)


@app.job
def sent(order: int) -> None:
    """What others submit."""


@app.job
def insert_without_key(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        shop.execute("INSERT INTO payments (order_id) VALUES (%s)", [order])  # fault: insert_without_key


@app.job
def insert_with_key(job: Job, order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        shop.execute(
            "INSERT INTO payments (order_id, made_for) VALUES (%s, %s) ON CONFLICT (made_for) DO NOTHING",
            [order, job.id],
        )


@app.job
def counter(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        shop.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")  # fault: counter


@app.job
def counter_mended(job: Job, order: int) -> None:
    with job.transaction() as shop:
        shop.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")


@app.job
def call_before_record(order: int) -> None:
    with psycopg.connect(SHOP, autocommit=True) as shop:
        row = shop.execute("SELECT charged FROM orders WHERE id = %s", [order]).fetchone()
        if row == (False,):
            outside.charge(order)  # fault: call_before_record
            shop.execute("UPDATE orders SET charged = true WHERE id = %s", [order])


@app.job
def call_with_key(job: Job, order: int) -> None:
    with psycopg.connect(SHOP, autocommit=True) as shop:
        row = shop.execute("SELECT charged FROM orders WHERE id = %s", [order]).fetchone()
        if row == (False,):
            outside.charge(order, key=job.id)
            shop.execute("UPDATE orders SET charged = true WHERE id = %s", [order])


@app.job
def record_before_call(job: Job, order: int) -> None:
    with psycopg.connect(SHOP, autocommit=True) as shop:
        won = shop.execute("UPDATE orders SET charged = true WHERE id = %s AND NOT charged", [order]).rowcount
        if won:
            outside.charge(order, key=job.id)  # fault: record_before_call


@app.job
def status_after_effect(order: int) -> None:
    with psycopg.connect(SHOP, autocommit=True) as shop:
        row = shop.execute("SELECT status FROM orders WHERE id = %s", [order]).fetchone()
        if row == ("new",):
            shop.execute("INSERT INTO payments (order_id) VALUES (%s)", [order])  # fault: status_after_effect
            shop.execute("UPDATE orders SET status = 'paid' WHERE id = %s", [order])


@app.job
def status_with_effect(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        moved = shop.execute("UPDATE orders SET status = 'paid' WHERE id = %s AND status = 'new'", [order])
        if moved.rowcount:
            shop.execute("INSERT INTO payments (order_id) VALUES (%s)", [order])


@app.job
def swallowed_error(job: Job, order: int) -> None:
    try:
        with psycopg.connect(SHOP) as shop:
            shop.execute(  # fault: swallowed_error
                "INSERT INTO payments (order_id, made_for) VALUES (%s, %s) ON CONFLICT (made_for) DO NOTHING",
                [order, job.id],
            )
    except psycopg.Error:
        logging.getLogger("shop").warning("no payment for %s", order)


@app.job
def read_then_write(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        row = shop.execute(  # read: read_then_write
            "SELECT status FROM orders WHERE id = %s", [order]
        ).fetchone()
        if row == ("new",):
            shop.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")  # fault: read_then_write
            shop.execute("UPDATE orders SET status = 'paid' WHERE id = %s", [order])


@app.job
def read_for_update(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        row = shop.execute("SELECT status FROM orders WHERE id = %s FOR UPDATE", [order]).fetchone()
        if row == ("new",):
            shop.execute("UPDATE stock SET n = n - 1 WHERE item = 'umbrella'")
            shop.execute("UPDATE orders SET status = 'paid' WHERE id = %s", [order])


@app.job
def delete_then_insert(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        shop.execute("DELETE FROM chunks WHERE source = 'a.pdf'")
        for part in (1, 2):
            shop.execute(  # fault: delete_then_insert
                "INSERT INTO chunks VALUES ('a.pdf', %s, 'text')",
                [part],
            )


@app.job
def replace_under_lock(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        shop.execute("SELECT pg_advisory_xact_lock(4711)")
        shop.execute("DELETE FROM chunks WHERE source = 'a.pdf'")
        for part in (1, 2):
            shop.execute("INSERT INTO chunks VALUES ('a.pdf', %s, 'text')", [part])


@app.job
def replace_in_two(order: int) -> None:
    with psycopg.connect(SHOP, autocommit=True) as shop:
        shop.execute("DELETE FROM chunks WHERE source = 'a.pdf'")  # fault: replace_in_two
        shop.execute("INSERT INTO chunks VALUES ('a.pdf', 1, 'text')")


@app.job
def file_appended(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        shop.execute("SELECT status FROM orders WHERE id = %s", [order])
    with Path("report.txt").open("a") as file:  # fault: file_appended
        file.write(f"{order}\n")


@app.job
def row_written(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        shop.execute(
            "INSERT INTO reports VALUES (%s, 'paid') ON CONFLICT (order_id) DO UPDATE SET line = excluded.line",
            [order],
        )


@app.job
def schema_without_lock(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        row = shop.execute("SELECT version FROM meta").fetchone()
        if row == (1,):
            shop.execute("ALTER TABLE stock ADD COLUMN price int")  # fault: schema_without_lock
            shop.execute("UPDATE meta SET version = 2")


@app.job
def schema_under_lock(order: int) -> None:
    with psycopg.connect(SHOP) as shop:
        shop.execute("SELECT pg_advisory_xact_lock(4712)")
        row = shop.execute("SELECT version FROM meta").fetchone()
        if row == (1,):
            shop.execute("ALTER TABLE stock ADD COLUMN price int")
            shop.execute("UPDATE meta SET version = 2")


@app.job
def submit_without_key(order: int) -> None:
    sent.submit(order)  # fault: submit_without_key


@app.job
def submit_with_key(job: Job, order: int) -> None:
    sent.using(key=job.id).submit(order)


@app.job
def deleted_then_copied(order: int) -> None:
    """A lock keeps two of them apart, and no reader."""
    with psycopg.connect(SHOP, autocommit=True) as shop:
        shop.execute("SELECT pg_advisory_lock(1)")
        shop.execute(  # fault: deleted_then_copied
            "DELETE\n  FROM words WHERE source = 'faq'"
        )
        with shop.cursor() as cursor, cursor.copy("COPY words FROM STDIN") as rows:
            rows.write_row(("faq", "one"))
            rows.write_row(("faq", "two"))
        shop.execute("SELECT pg_advisory_unlock(1)")


@app.job
def word_replaced(order: int) -> None:
    """Its table has a column of the name that statements often give to a row."""
    with psycopg.connect(SHOP) as shop:
        shop.execute("SELECT pg_advisory_xact_lock(1)")
        shop.execute("DELETE FROM words WHERE source = 'faq'")
        shop.execute("INSERT INTO words VALUES ('faq', 'one')")
