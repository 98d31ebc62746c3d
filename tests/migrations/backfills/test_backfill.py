"""A backfill meets every row once, can be held and let go, and names what it cannot do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from fencerow import App
from fencerow.errors import (
    BackfillRunning,
    DeclarationError,
    InvalidBackfill,
    InvalidInput,
    UnknownBackfill,
    UnusableTable,
)
from fencerow.migrations import Backfill, BackfillStatus
from fencerow.migrations.backfills import operations as backfills
from fencerow.migrations.backfills.operations import BackfillSource, Range, Walk
from tests.migrations.backfills.conftest import Table


def mark(connection: Any, first: Any, last: Any) -> None:
    """Count how often each row is met, and note the range."""
    sign = "?" if hasattr(connection, "in_transaction") else "%s"
    connection.execute(f"UPDATE messages SET met = met + 1 WHERE id BETWEEN {sign} AND {sign}", (first, last))
    connection.execute(f"INSERT INTO ranges VALUES ({sign}, {sign})", (str(first), str(last)))


def backfill(app: App, fill: Any = mark, name: str = "marks", **options: Any) -> Backfill:
    return Backfill(app, name, fill, **{"table": "messages", "key": "id", "batch_rows": 10, **options})


async def reached(
    fill: Backfill, *states: str, when: Callable[[BackfillStatus], bool] | None = None
) -> BackfillStatus:
    deadline = time.monotonic() + 90
    while True:
        status = await fill.astatus()
        if status.state in states and (when is None or when(status)):
            return status
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.01)


async def test_every_row_is_met_once_in_ranges_of_the_key(app: App, table: Table) -> None:
    table.fill(*range(1, 96), 200, 300)
    fill = backfill(app)
    started = fill.start()
    assert started.state == "running" and started.percent == 0 and started.rows_planned == 97

    async with app.worker():
        status = await reached(fill, "done")

    assert set(table.met().values()) == {1}
    assert (status.rows_done, status.ranges_done, status.percent) == (97, 10, 100.0)
    assert table.rows("SELECT last FROM ranges")[-1] == ("300",)
    assert fill.start().state == "done", "what was started before is not started again"
    assert len(table.rows("SELECT * FROM ranges")) == 10


async def test_rows_that_come_later_are_met_if_their_key_lies_ahead(app: App, table: Table) -> None:
    table.fill(*range(10, 100, 10))

    def adding(connection: Any, first: int, last: int) -> None:
        if first == 10:
            connection.execute("INSERT INTO messages (id) VALUES (1), (85), (1000)")
        mark(connection, first, last)

    fill = backfill(app, adding, batch_rows=3)
    fill.start()
    async with app.worker():
        await reached(fill, "done")

    met = table.met()
    assert (met[1], met[85], met[1000]) == (0, 1, 0)


async def test_it_pauses_after_the_range_under_way_and_goes_on_where_it_was(app: App, table: Table) -> None:
    table.fill(*range(1, 101))
    seen: list[int] = []

    def pausing(connection: Any, first: int, last: int) -> None:
        seen.append(first)
        mark(connection, first, last)

    fill = backfill(app, pausing, pause_s=0.05)
    fill.start()
    async with app.worker():
        await reached(fill, "running", when=lambda status: status.ranges_done >= 2)
        paused = await fill.apause()
        assert paused.state == "paused"
        held = (await fill.astatus()).ranges_done
        walked = len(seen)
        assert held == paused.ranges_done < 10
        await fill.aresume()
        done = await reached(fill, "done")

    assert set(table.met().values()) == {1} and done.rows_done == 100
    assert len(seen) == 10 and walked >= held


async def test_a_range_that_fails_is_tried_again_then_named_and_resumed(app: App, table: Table) -> None:
    table.fill(*range(1, 51))
    broken = [True]

    def failing(connection: Any, first: int, last: int) -> None:
        mark(connection, first, last)
        if broken[0] and first == 21:
            raise KeyError("no sender")

    fill = backfill(app, failing, failures_max=2)
    fill.start()
    async with app.worker():
        status = await reached(fill, "failed")
        (failed,) = status.failed
        assert (failed.first, failed.last, failed.failures, failed.gave_up) == ("21", "30", 2, True)
        assert "no sender" in failed.error and status.rows_done == 20
        assert set(table.met().values()) == {0, 1}, "nothing of a range that failed stays"
        (job,) = await app.client.alist_jobs(limit=10)
        ended = await app.client.await_ended(job.id, timeout_s=60)
        assert ended.state == "failed" and "21 to 30" in str(ended.error)
        broken[0] = False
        await fill.aresume()
        done = await reached(fill, "done")

    assert set(table.met().values()) == {1} and done.failed == ()


async def test_lanes_share_the_keys(app: App, table: Table) -> None:
    table.fill(*range(-20, 81))
    fill = backfill(app, lanes=4)
    status = fill.start()
    assert [(lane.first, lane.last) for lane in status.lanes] == [
        ("-20", "5"), ("6", "31"), ("32", "57"), ("58", "80"),
    ]  # fmt: skip
    async with app.worker():
        done = await reached(fill, "done")

    assert set(table.met().values()) == {1} and done.rows_done == 101


async def test_keys_may_be_text(app: App, table: Table) -> None:
    table.fill(*range(1, 51))

    def by_name(connection: Any, first: str, last: str) -> None:
        sign = "%s" if table.on_postgres else "?"
        connection.execute(
            f"UPDATE messages SET met = met + 1 WHERE name BETWEEN {sign} AND {sign}", (first, last)
        )

    fill = backfill(app, by_name, key="name", batch_rows=7)
    fill.start()
    async with app.worker():
        await reached(fill, "done")
    assert set(table.met().values()) == {1}
    with pytest.raises(InvalidBackfill, match="whole numbers"):
        backfill(app, by_name, "lanes", key="name", lanes=2).start()


async def test_keys_may_be_what_the_server_orders(app: App, table: Table) -> None:
    """Such as uuid, for which older servers have no greatest."""
    if not table.on_postgres:
        return
    table.rows("CREATE TABLE orders (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), met integer DEFAULT 0)")
    table.rows("INSERT INTO orders SELECT FROM generate_series(1, 40)")

    def by_id(connection: Any, first: Any, last: Any) -> None:
        connection.execute("UPDATE orders SET met = met + 1 WHERE id BETWEEN %s AND %s", (first, last))

    fill = backfill(app, by_id, table="public.orders", batch_rows=7)
    fill.start()
    async with app.worker():
        await reached(fill, "done")
    assert table.rows("SELECT DISTINCT met FROM orders") == [(1,)]


async def test_an_empty_table_is_done_at_once(app: App, table: Table) -> None:
    assert backfill(app).start().state == "done"


async def test_the_rate_is_kept(app: App, table: Table) -> None:
    table.fill(*range(1, 41))
    fill = backfill(app, rows_per_s=100)
    fill.start()
    started = time.monotonic()
    async with app.worker():
        await reached(fill, "done")
    assert time.monotonic() - started >= 0.3, "four ranges of 10 rows, at 100 rows a second"


async def test_a_replica_that_is_behind_holds_it_back(app: App, table: Table) -> None:
    engine: Any = app.engine
    engine.queries = engine.queries.altered("replication_lag", "SELECT ", "SELECT 99.0 + 0 * ")
    fill = backfill(app, lag_max_s=5.0)
    assert fill._wait_s(10, 0.1) == 1.0
    assert backfill(app, name="other", lag_max_s=100.0)._wait_s(10, 0.1) == 0.0


async def test_only_the_newest_attempt_of_the_newest_run_moves_a_lane(app: App, table: Table) -> None:
    table.fill(*range(1, 21))
    fill = backfill(app)
    fill.start()
    old, new = Walk("marks", 0, 1, attempt=1), Walk("marks", 0, 1, attempt=2)
    source, queries = BackfillSource.of("messages", "id"), app.engine.queries
    taken = app.engine.run(backfills.take(old))
    assert taken is not None
    found = app.engine.run(backfills.next_range(taken, source, 10, queries))
    assert found == Range(1, 10, 10)

    assert app.engine.run(backfills.take(new)) is not None
    assert app.engine.run(backfills.take(old)) is None
    assert not app.engine.run(backfills.move(old, taken, found))
    assert app.engine.run(backfills.fail(old, found, "late", 1)) is None
    assert app.engine.run(backfills.move(new, taken, found))
    assert not app.engine.run(backfills.move(new, taken, found)), "the cursor has moved on"
    fill.pause()
    fill.resume()
    assert app.engine.run(backfills.take(new)) is None, "its run is over"


async def test_what_cannot_work_is_refused(app: App, table: Table) -> None:
    async def asynchronous(connection: Any, first: int, last: int) -> None: ...

    with pytest.raises(InvalidBackfill, match="coroutine"):
        backfill(app, asynchronous)
    with pytest.raises(InvalidInput):
        backfill(app, table='messages"; DROP')
    with pytest.raises(UnusableTable, match="nowhere"):
        backfill(app, name="one", table="nowhere").start()
    with pytest.raises(UnusableTable, match="nothing"):
        backfill(app, name="two", key="nothing").start()
    fill = backfill(app, name="three")
    for ask in (fill.status, fill.resume):
        with pytest.raises(UnknownBackfill, match="three"):
            ask()
    with pytest.raises(DeclarationError, match=r"backfill\.three"):
        backfill(app, name="three")


async def test_a_name_means_one_table_until_it_is_forgotten(app: App, table: Table) -> None:
    table.fill(1, 2, 3)
    fill = backfill(app)
    fill.start()
    other = App(table.url)
    another = backfill(other, table="ranges", key="first")
    with pytest.raises(InvalidBackfill, match=r"messages\.id"):
        another.start()
    with pytest.raises(BackfillRunning):
        another.forget()
    fill.pause()
    another.forget()
    assert another.start().state == "done"
    other.close()
