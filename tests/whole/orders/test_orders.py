"""As many shipped as accepted: real processes, orders over HTTP, workers that are killed, and a rolling restart."""

from __future__ import annotations

import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from tests.whole.orders.conftest import Shop, waited

ORDERS = 30
SKUS = ("tent", "stove", "lamp", "rope")
DELIVERED = 1_000
REFUNDS = 3


def test_as_many_are_shipped_as_were_accepted(shop: Shop) -> None:
    first = shop.workers()
    with ThreadPoolExecutor(4) as customers:
        answers = customers.map(lambda number: place(shop, number), range(ORDERS))
        waited(lambda: shop.books.held)  # charged, and the shop has not heard of it
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        shop.books.hold_after = None
        shop.books.release.set()
        accepted = [order for status, order in answers if status == 202]
    assert place(shop, 7) == (202, {"order": "order-7", "new": False})
    assert place(shop, 7, quantity=9)[0] == 409

    shipped_past(shop, 8)
    os.kill(min(shop.workers()), signal.SIGKILL)
    shipped_past(shop, 16)
    rolled_from = shop.workers()
    shop.supervisor.send_signal(signal.SIGHUP)
    waited(lambda: shop.workers().isdisjoint(rolled_from))
    shipped_past(shop, ORDERS)

    for number in range(REFUNDS):
        assert shop.ask("POST", f"/orders/order-{number}/refund")[0] == 202
    waited(lambda: shop.in_state("refunded") == REFUNDS)
    today = datetime.now(UTC).date().isoformat()
    count = shop.ask("POST", "/stock-counts")[1]["job"]
    shop.ask("POST", f"/reports/{today}")
    waited(lambda: not shop.rows(UNENDED[type(shop.engine).__name__]))
    waited(lambda: sum(each["orders"] for each in shop.ask("GET", "/sales")[1].values()) >= len(accepted))

    assert len(accepted) == ORDERS
    the_orders_are_right(shop)
    the_books_are_right(shop)
    the_shelves_are_right(shop, count)
    assert shop.ask("GET", f"/reports/{today}")[1]["shipped"] == ORDERS


UNENDED = {
    "SqliteEngine": "SELECT id, name, state FROM fencerow_jobs WHERE state NOT IN ('succeeded')",
    "PostgresEngine": "SELECT id, name, state FROM fencerow.jobs WHERE state NOT IN ('succeeded')",
}


def place(shop: Shop, number: int, quantity: int | None = None) -> tuple[int, object]:
    """Order something: number and key decide what."""
    order = {
        "sku": SKUS[number % 4],
        "quantity": quantity or 1 + number % 3,
        "email": f"{number}@example.org",
    }
    return shop.ask("POST", "/orders", order, **{"Idempotency-Key": f"order-{number}"})


def shipped_past(shop: Shop, count: int) -> None:
    waited(lambda: shop.in_state("shipped") >= count)


def ordered() -> Counter[str]:
    """How much of each article."""
    sums: Counter[str] = Counter()
    for number in range(ORDERS):
        sums[SKUS[number % 4]] += 1 + number % 3
    return sums


def the_orders_are_right(shop: Shop) -> None:
    states = dict(shop.rows("SELECT state, count(*) FROM orders GROUP BY state"))
    assert states == {"shipped": ORDERS - REFUNDS, "refunded": REFUNDS}
    assert shop.rows("SELECT count(*) FROM orders WHERE parcel IS NOT NULL") == [(ORDERS,)]
    assert shop.rows("SELECT count(*) FROM invoices") == [(ORDERS,)]


def the_books_are_right(shop: Shop) -> None:
    """Each was charged once, also those whose worker died between the charge and its commit."""
    assert set(Counter(shop.books.done).values()) == {1}
    whats = Counter(what for what, _ in shop.books.done)
    assert whats == {"authorise": ORDERS, "capture": ORDERS, "refund": REFUNDS}
    assert shop.books.repeated >= 1, "nobody died in between, so this has shown nothing"


def the_shelves_are_right(shop: Shop, count: str) -> None:
    sums = ordered()
    sales = shop.ask("GET", "/sales")[1]
    assert {sku: each["quantity"] for sku, each in sales.items()} == sums, "each event was applied once"
    assert sum(each["orders"] for each in sales.values()) == ORDERS
    for number in range(REFUNDS):
        sums[SKUS[number % 4]] -= 1 + number % 3
    counted = shop.ask("GET", f"/stock-counts/{count}")[1]
    assert counted == {sku: {"on_shelf": DELIVERED - sums[sku], "missing": 0} for sku in SKUS}
