"""Handlers on a SQLite file whose guards are ours: wrong ones, at the line that says so, and right ones."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

from fencerow import App, Job, Snooze
from fencerow.events import publish
from fencerow.guards.mutex import Mutex
from fencerow.guards.once import once
from fencerow.guards.transitions import Lease, Move, Refusal, Transitions
from tests.proof.check.handlers import outside

app = App("sqlite:///shop.db")
SHOP = "shop.db"

TABLES = """
CREATE TABLE sold (id TEXT PRIMARY KEY);
CREATE TABLE stock (item TEXT PRIMARY KEY, n INTEGER NOT NULL);
INSERT INTO stock VALUES ('umbrella', 7);
CREATE TABLE receipts (number INTEGER PRIMARY KEY, made_for TEXT UNIQUE);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, state TEXT NOT NULL, claims INTEGER NOT NULL DEFAULT 0, since TEXT, note TEXT
);
INSERT INTO orders (id, state) VALUES (1, 'new');
CREATE TABLE parcels (id INTEGER PRIMARY KEY, state TEXT NOT NULL);
INSERT INTO parcels VALUES (1, 'new');
"""

orders = Transitions(
    app,
    table="orders",
    column="state",
    states=["new", "working", "done"],
    moves=[
        Move(
            "start",
            "new",
            "working",
            lease=Lease(lease_s=60, since="since", fence="claims", when_stale="back"),
        ),
        Move("back", "working", "new"),
        Move("finish", "working", "done", sets="note"),
    ],
)

parcels = Transitions(
    app,
    table="parcels",
    column="state",
    states=["new", "packed", "sent"],
    moves=[Move("pack", "new", "packed"), Move("send", "packed", "sent")],
)


def tables(url: str) -> None:
    with sqlite3.connect(SHOP) as shop:
        shop.executescript(TABLES)


def sell(order: int) -> bool:
    with sqlite3.connect(SHOP) as shop:
        sold = shop.execute("INSERT INTO sold VALUES (?) ON CONFLICT DO NOTHING", [str(order)]).rowcount == 1
        if sold:
            shop.execute("UPDATE stock SET n = n - 1")
        return sold


# --- wrong -----------------------------------------------------------------------------------------------


@app.job
def published_after_the_commit(order: int) -> None:
    sell(order)
    publish(app, "order.sold", {"order": order}, key=str(order))  # fault: published_after_the_commit


@app.job
def published_if_first(order: int) -> None:
    if sell(order):
        publish(app, "order.sold", {"order": order}, key=str(order))  # fault: published_if_first


@app.job
def mark_in_a_temporary_file(order: int) -> None:
    mark = Path(tempfile.gettempdir()) / f"done-{order}"
    if mark.exists():
        return
    with sqlite3.connect(SHOP) as shop:
        shop.execute("UPDATE stock SET n = n - 1")  # fault: mark_in_a_temporary_file
    mark.touch()


@app.job
def mark_in_shared_memory(order: int) -> None:
    mark = Path("/dev/shm") / f"fencerow-check-mark-{os.getppid()}"
    if mark.exists():
        return
    with sqlite3.connect(SHOP) as shop:
        shop.execute("UPDATE stock SET n = n - 1")
    with mark.open("w"):  # fault: mark_in_shared_memory
        pass
    mark.unlink()


@app.job
def result_of_the_last_run(order: int) -> dict[str, object]:
    with sqlite3.connect(SHOP) as shop:
        return {
            "order": order,
            "new": shop.execute("INSERT INTO sold VALUES ('a') ON CONFLICT DO NOTHING").rowcount,
        }


@app.job
def a_key_for_each_attempt(job: Job, order: int) -> None:
    with once(app, f"{order}-{job.attempt}") as turn:  # fault: a_key_for_each_attempt
        if turn.needed:
            sell(order)


@app.job
def refused_is_success(order: int) -> None:
    if parcels.move("pack", order) is None:  # without a lease nobody hands the row over to the next attempt
        return
    parcels.move("send", order)


# --- right -----------------------------------------------------------------------------------------------


@app.job
def published_with_the_rows(job: Job, order: int) -> None:
    with job.transaction() as shop:
        shop.execute("UPDATE stock SET n = n - 1")
        publish(app, "order.sold", {"order": order}, key=str(order), connection=shop)


@app.job
def snoozes_while_leased(order: int) -> None:
    claimed = orders.move_or_why("start", order)
    if isinstance(claimed, Refusal):
        if claimed.reason == "leased":
            raise Snooze(30)
        return
    outside.charge(order, key=f"ship-{order}")
    orders.move("finish", order, fence=claimed["claims"], values={"note": "ok"})


@app.job
def takes_over_what_it_leased(order: int) -> None:
    row = orders.move("start", order)
    if row is None:
        return
    orders.move("finish", order, fence=row["claims"], values={"note": "ok"})


@app.job
def asks_again(order: int) -> None:
    outside.look_up(order)
    sell(order)


@app.job
def result_with_a_number_of_the_database(job: Job, order: int) -> int:
    with sqlite3.connect(SHOP) as shop:
        shop.execute("INSERT INTO receipts (made_for) VALUES (?) ON CONFLICT DO NOTHING", [job.id])
        number: int = shop.execute("SELECT number FROM receipts WHERE made_for = ?", [job.id]).fetchone()[0]
    return number


@app.job
def under_a_mutex(order: int) -> None:
    with Mutex(app, "shop", busy="snooze"):
        sell(order)


@app.job
def temporary_file(order: int) -> None:
    with tempfile.NamedTemporaryFile("w+") as draft:
        draft.write("draft")
    sell(order)
