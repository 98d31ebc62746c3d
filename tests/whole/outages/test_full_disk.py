"""A disk that is full for real: nothing is promised that is not kept, and all goes on once there is room."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable

import psycopg
import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation, execute
from fencerow.errors import OutcomeUnknown
from fencerow.testing.postgres import PostgresServer
from tests.kit.pace import PATIENCE_S, slower
from tests.whole.outages.after import check_books
from tests.whole.outages.callers import calling, until
from tests.whole.outages.disk import Disk, small_disk
from tests.whole.outages.shop import Shop, staffed

pytestmark = [pytest.mark.timed, pytest.mark.prove]

FULL_ERRORS = {"StorageFull", "OutcomeUnknown", "Unavailable", "Busy"}
BACK_S = slower(5.0)
SMALL_LOG = {"min_wal_size": "32MB", "max_wal_size": "32MB", "wal_recycle": "off", "shared_buffers": "16MB"}


async def test_a_full_disk_of_the_server(report: Callable[[str], None]) -> None:
    """First tables cannot grow; then the write-ahead log cannot, and the server ends by itself."""
    with small_disk(160) as disk, PostgresServer(parent=disk.path, settings=SMALL_LOG) as server:
        url = server.create_role_and_schema()
        counter, worker = Shop(url, connect_timeout_s=0.5), Shop(url)
        await asyncio.to_thread(counter.prepare)
        async with staffed(worker), calling(counter) as callers:
            await callers.accepted_more(40)
            disk.fill()
            await until(lambda: callers.errors["StorageFull"] >= 3, "callers are told of the full disk")
            ended = await asyncio.to_thread(_exhaust_log, server)
            await until(lambda: callers.errors.total() >= 20, "callers are told of the outage")
            back_s = await _recovered(disk, server, worker)
            await callers.accepted_more(40)
            await callers.stop()
            told = await check_books(counter, callers)
        for shop in (counter, worker):
            await shop.app.aclose()

    report(f"PostgreSQL, server {ended}; back after {back_s:.2f} s; {told}")
    assert set(callers.errors) <= FULL_ERRORS
    assert back_s < BACK_S


async def test_a_full_disk_under_a_sqlite_file(journal: str, report: Callable[[str], None]) -> None:
    with small_disk(16) as disk:  # a write-ahead log takes 4 MiB before it is written back
        path = disk.path / "jobs.db"
        shop = Shop(f"sqlite:///{path}", busy_timeout_s=2.0)
        await asyncio.to_thread(shop.prepare)
        async with staffed(shop), calling(shop) as callers:
            await callers.accepted_more(40)
            disk.fill()
            await until(lambda: callers.errors.total() >= 20, "callers are told of the full disk")
            suffered = shop.app.telemetry.counters
            await until(lambda: suffered.get("renewal_failures") > 0, "leases cannot be renewed")
            await until(lambda: suffered.get("loop_errors") > 0, "the worker cannot go on")
            disk.make_room()
            roomy_at = time.monotonic()
            back_s = await shop.first_success_after(roomy_at)
            await callers.accepted_more(40)
            await callers.stop()
            told = await check_books(shop, callers)
        await shop.app.aclose()
        with contextlib.closing(sqlite3.connect(path)) as file:
            assert file.execute("PRAGMA journal_mode").fetchone() in {(journal,), ("delete",)}
            assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    report(f"SQLite ({journal}); back after {back_s:.2f} s; {told}")
    assert set(callers.errors) <= FULL_ERRORS
    assert callers.errors["StorageFull"] > 0
    assert back_s < BACK_S


def test_a_panic_leaves_the_outcome_open() -> None:
    """The server calls it "disk full", but what was to be committed may have reached the disk before."""
    switching = store.postgres_queries().altered(
        "clock", "SELECT ", "SELECT pg_logical_emit_message(true, 'outage', 'x'), pg_switch_wal(), "
    )
    switch = Operation("switch", lambda: execute("clock"), alone=True)
    with small_disk(160) as disk, PostgresServer(parent=disk.path, settings=SMALL_LOG) as server:
        server.create_role_and_schema()
        engine = PostgresEngine(server.conninfo("app"), switching, connect_timeout_s=0.5)
        store.migrate(engine)
        disk.fill()
        with pytest.raises(OutcomeUnknown, match=r"No space left|broke"):
            for _ in range(20):
                engine.run(switch)
        engine.close()


def _exhaust_log(server: PostgresServer) -> str:
    """Begin new files of the write-ahead log until there is no room for one; says what became of the server.

    The server's own log lies on the full disk too. That it panicked shows by a connection that breaks:
    an ordinary error would leave it open.
    """
    deadline = time.monotonic() + PATIENCE_S
    with server.connect() as witness:
        while not witness.broken:
            assert time.monotonic() < deadline, "the write-ahead log never ran out of room"
            with contextlib.suppress(psycopg.Error):
                witness.execute("SELECT pg_logical_emit_message(true, 'outage', 'x')")
                witness.execute("SELECT pg_switch_wal()")
    time.sleep(1.0)  # it ends, or tries to come back by itself: both are allowed
    return "panicked and stayed" if server.pid else "panicked and ended"


async def _recovered(disk: Disk, server: PostgresServer, worker: Shop) -> float:
    """Make room and start the server where it ended; returns the seconds until a job succeeded again."""
    disk.make_room()
    await asyncio.to_thread(server.start)
    await until(lambda: _accepts(server), "the server accepts connections")
    return await worker.first_success_after(time.monotonic())


def _accepts(server: PostgresServer) -> bool:
    try:
        server.connect().close()
    except psycopg.OperationalError:
        return False
    return True
