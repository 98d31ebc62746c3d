"""The two grounds of a storm: a PostgreSQL server behind proxies, and a SQLite file; each on a disk to be filled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit
from fencerow.limits.limits import define
from fencerow.testing.clock import DatabaseClock, PostgresClock, clock_of
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.proxy import FaultProxy
from tests.kit.databases import scratch_folder
from tests.proof.storm import ledger
from tests.proof.storm.plan import FRAGILE, LIMITS
from tests.whole.outages.disk import Disk, small_disk

SERVER = {
    "min_wal_size": "32MB",
    "max_wal_size": "64MB",
    "wal_recycle": "off",
    "shared_buffers": "64MB",
    "max_connections": "130",
}


class Ground:
    """What both have: an engine of our own that goes around every proxy, and where trouble may be made."""

    def __init__(
        self, engine: PostgresEngine | SqliteEngine, disk: Disk | None, clock: DatabaseClock
    ) -> None:
        self.engine = engine
        self.disk = disk  # None where none can be mounted
        self.clock = clock
        self.whole = threading.Lock()  # held by the one fault that strikes the whole database

    @property
    def kind(self) -> str:
        return self.engine.dialect


class PostgresGround(Ground):
    """A server, and a proxy each before workers and clients."""

    def __init__(self, server: PostgresServer, disk: Disk | None, stack: ExitStack) -> None:
        engine = PostgresEngine(
            server.create_role_and_schema(), store.postgres_queries(), connect_timeout_s=2.0
        )
        # By the superuser, who gets a connection when all others are taken.
        super().__init__(engine, disk, PostgresClock(server.conninfo("app")))
        self.server = server
        self.proxies = {
            is_worker: stack.enter_context(FaultProxy(server.port)) for is_worker in (True, False)
        }
        self.cutting = {is_worker: threading.Lock() for is_worker in (True, False)}

    def url(self, *, is_worker: bool, spared: bool = False) -> str:
        """Where workers, or clients, are told the database is; the spared one goes around the proxies."""
        if spared:
            return self.server.conninfo("app", "app")
        port = self.proxies[is_worker].port
        return f"postgresql://app:{self.server.password}@127.0.0.1:{port}/app"


class SqliteGround(Ground):
    """A file."""

    def __init__(self, path: Path, disk: Disk | None) -> None:
        engine = SqliteEngine(path, store.sqlite_queries(), busy_timeout_s=15.0)
        super().__init__(engine, disk, clock_of(engine))
        self.path = path

    def set_clock(self, offset_us: int) -> None:
        """Set our own clock off by so much."""
        assert isinstance(self.engine, SqliteEngine)
        self.engine.clock.offset_us = offset_us

    def url(self, *, is_worker: bool, spared: bool = False) -> str:
        """Where workers and clients are told the database is."""
        return f"sqlite:///{self.path}"


@contextmanager
def postgres_ground(disk_mib: int) -> Iterator[PostgresGround]:
    """A fresh server with a migrated database."""
    with ExitStack() as stack:
        disk = stack.enter_context(_disk(disk_mib))
        parent = None if disk is None else disk.path
        server = stack.enter_context(
            PostgresServer(fast=disk is None, parent=parent, tcp=True, settings=SERVER)
        )
        ground = PostgresGround(server, disk, stack)
        stack.callback(ground.engine.close)
        _prepare(ground)
        yield ground


@contextmanager
def sqlite_ground(disk_mib: int) -> Iterator[SqliteGround]:
    """A fresh file with its tables."""
    with ExitStack() as stack:
        disk = stack.enter_context(_disk(disk_mib))
        folder = stack.enter_context(scratch_folder()) if disk is None else disk.path
        ground = SqliteGround(folder / "jobs.db", disk)
        stack.callback(ground.engine.close)
        _prepare(ground)
        yield ground


def _disk(size_mib: int) -> AbstractContextManager[Disk | None]:
    """A disk that can be filled, or none where nothing may be mounted: then that fault is left out, and said so."""
    try:
        with small_disk(1):
            pass
    except (AssertionError, OSError):
        return nullcontext()
    return small_disk(size_mib)


def _prepare(ground: Ground) -> None:
    store.migrate(ground.engine)
    for name, slots in LIMITS.items():
        ground.engine.run(define(Limit(name, at_once=slots), actor="storm", reason=None))
    ground.engine.run(define(Limit("fragile", breaker=FRAGILE), actor="storm", reason=None))
    ledger.prepare(ground.engine)
