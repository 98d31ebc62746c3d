"""As many shipped as accepted: real processes, orders over HTTP, workers that are killed, and a rolling restart."""

from __future__ import annotations

import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from tests.whole.orders.conftest import Shop, waited

ORDERS = 30
LATE = 6  # of these: placed while the workers are replaced
SKUS = ("tent", "stove", "lamp", "rope")
DELIVERED = 1_000
REFUNDS = 3
LAMPS = 100  # delivered, and most of them sold before somebody wants them all
REFUSED = {"order-30": ("lamp", LAMPS, "sold out"), "order-31": ("tent", 23, "declined")}


@pytest.mark.prove
def test_as_many_are_shipped_as_were_accepted(shop: Shop) -> None:
    began_on = today()
    shop.rows(f"UPDATE items SET delivered = {LAMPS}, on_shelf = {LAMPS} WHERE sku = 'lamp' RETURNING sku")
    first = shop.workers()
    with ThreadPoolExecutor(4) as customers:
        answers = customers.map(lambda number: place(shop, number), range(ORDERS - LATE))
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
    accepted += [
        order
        for status, order in (place(shop, each) for each in range(ORDERS - LATE, ORDERS))
        if status == 202
    ]
    assert not rolled_from.isdisjoint(shop.workers()), "they were replaced before the orders came"
    waited(lambda: shop.workers().isdisjoint(rolled_from))
    shipped_past(shop, ORDERS)
    for order, (sku, quantity, _) in REFUSED.items():
        assert order_of(shop, order, sku, quantity)[0] == 202

    for number in range(REFUNDS):
        assert shop.ask("POST", f"/orders/order-{number}/refund")[0] == 202
    waited(lambda: shop.in_state("refunded") == REFUNDS)
    count = shop.ask("POST", "/stock-counts")[1]["job"]
    days = {began_on, today()}  # two, if midnight came meanwhile
    for day in days:
        shop.ask("POST", f"/reports/{day}")
    waited(lambda: not shop.rows(UNENDED[type(shop.engine).__name__]))
    waited(lambda: sum(each["orders"] for each in shop.ask("GET", "/sales")[1].values()) >= len(accepted))

    assert len(accepted) == ORDERS
    the_orders_are_right(shop)
    the_books_are_right(shop)
    the_shelves_are_right(shop, count)
    the_mails_are_right(shop)
    assert sum(shop.ask("GET", f"/reports/{day}")[1]["shipped"] for day in days) == ORDERS


def today() -> str:
    return datetime.now(UTC).date().isoformat()


UNENDED = {
    "SqliteEngine": "SELECT id, name, state FROM fencerow_jobs WHERE state NOT IN ('succeeded')",
    "PostgresEngine": "SELECT id, name, state FROM fencerow.jobs WHERE state NOT IN ('succeeded')",
}


def place(shop: Shop, number: int, quantity: int | None = None) -> tuple[int, object]:
    """Order something: number and key decide what."""
    return order_of(shop, f"order-{number}", SKUS[number % 4], quantity or 1 + number % 3)


def order_of(shop: Shop, key: str, sku: str, quantity: int) -> tuple[int, object]:
    order = {"sku": sku, "quantity": quantity, "email": f"{key}@example.org"}
    return shop.ask("POST", "/orders", order, **{"Idempotency-Key": key})


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
    assert states == {"shipped": ORDERS - REFUNDS, "refunded": REFUNDS, "sold_out": 1, "declined": 1}
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
    delivered = {sku: LAMPS if sku == "lamp" else DELIVERED for sku in SKUS}
    assert counted == {sku: {"on_shelf": delivered[sku] - sums[sku], "missing": 0} for sku in SKUS}


def the_mails_are_right(shop: Shop) -> None:
    """Each customer was told how it ended. One whose worker died right after the mail may have got it twice."""
    told = {(f"order-{number}", "shipped") for number in range(ORDERS)}
    told |= {(f"order-{number}", "refunded") for number in range(REFUNDS)}
    told |= {(order, why) for order, (_, _, why) in REFUSED.items()}
    lines = (shop.folder / "mails").read_text("utf-8").splitlines()
    assert {tuple(line.split("@example.org: ")) for line in lines} == told
