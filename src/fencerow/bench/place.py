"""Where is measured: a private server or file, or scratch tables on the user's own database, gone afterwards."""

from __future__ import annotations

import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from fencerow.config import Config
from fencerow.core.config import CoreConfig
from fencerow.core.errors import InvalidInput
from fencerow.core.store import store
from fencerow.core.store.connect import open_engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.probe import reach_postgres
from fencerow.db.queries import load, postgres_names, pyformat, sqlite_names
from fencerow.db.run import Rows, Statement, Steps, execute, operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.url import PostgresUrl, parse_url
from fencerow.testing.postgres import PostgresServer

PACKAGE = "fencerow.bench"
SCRATCH = "fencerow_bench_"  # how the name of every schema begins that is made here, and may be dropped here
SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "15min"}

AnyEngine = PostgresEngine | SqliteEngine


@dataclass(frozen=True)
class BenchDatabase:
    """One database to measure on, with empty job tables of its own."""

    kind: str
    config: Config
    about: str
    server_pid: int | None = None  # of a private server: its CPU time can be read

    @contextmanager
    def engine(self) -> Iterator[AnyEngine]:
        """Our engine, which knows the statements of the bench too."""
        engine = open_engine(self.config)
        with_bench(engine)
        try:
            yield engine
        finally:
            engine.close()

    @contextmanager
    def raw(self, engine: AnyEngine) -> Iterator[BareConnection]:
        """A bare connection of the driver, as durable as ours."""
        if isinstance(engine, PostgresEngine):
            with psycopg.connect(engine.conninfo, autocommit=True) as connection:
                yield BareConnection(connection, engine)
            return
        file = sqlite3.connect(engine.path, isolation_level=None)
        try:
            file.execute("PRAGMA synchronous = FULL")
            file.execute(f"PRAGMA journal_mode = {engine.run(_asked('bench_journal'))[0][0]}")
            yield BareConnection(file, engine)
        finally:
            file.close()


class BareConnection:
    """A driver's connection that is handed the named statements of the bench, with nothing of ours around them."""

    def __init__(self, connection: Any, engine: AnyEngine) -> None:
        self.connection = connection
        self._engine = engine
        self.takes_arrays = isinstance(engine, PostgresEngine)

    def text(self, name: str) -> str:
        """The statement as this driver takes it."""
        (text,) = self._engine.queries[name].statements
        return pyformat(text) if self.takes_arrays else text

    def run(self, name: str, **params: Any) -> list[Any]:
        """Execute one statement and commit it."""
        cursor = self.connection.execute(self.text(name), params)
        return cursor.fetchall() if cursor.description else []


@operation(alone=True, writes="")
def _asked(name: str) -> Steps[Rows]:
    return (yield Statement(name, {}))


@contextmanager
def private_postgres(folder: Path | None = None) -> Iterator[BenchDatabase]:
    """A server of our own with fsync, on disk or in this folder.

    Raises:
        BinariesMissing: PostgreSQL's programs are not on this machine.
    """
    with PostgresServer(fast=False, settings=SETTINGS, parent=folder) as server:
        config = Config(url=server.create_role_and_schema(), pool_max=10)
        with _prepared(config):
            yield BenchDatabase("postgres", config, _about_server(config), server.pid)


@contextmanager
def private_sqlite(folder: Path) -> Iterator[BenchDatabase]:
    """A file of our own in this folder, and so on its disk."""
    with tempfile.TemporaryDirectory(prefix=".fencerow-bench-", dir=folder) as made:
        config = Config(url=f"sqlite:///{Path(made).absolute() / 'bench.db'}")
        with _prepared(config) as engine:
            mode = engine.run(_asked("bench_journal"))[0][0]
        yield BenchDatabase(
            "sqlite", config, f"SQLite {sqlite3.sqlite_version}, synchronous=FULL, journal_mode={mode}"
        )


@contextmanager
def private_place(kind: str) -> Iterator[BenchDatabase]:
    """One of the two, by the name of its kind, on the disk of temporary files."""
    if kind == "postgres":
        with private_postgres() as place:
            yield place
        return
    with tempfile.TemporaryDirectory() as folder, private_sqlite(Path(folder)) as place:
        yield place


@contextmanager
def scratch(config: CoreConfig, *, force: bool = False) -> Iterator[BenchDatabase]:
    """Scratch tables on the database that the settings name: a schema of its own, or a file beside the file.

    Raises:
        InvalidInput: it is a standby, no schema may be made there, or workers are at work on it and `force`
            was not given. Nothing was made.
    """
    url = parse_url(config.url or "")
    if not isinstance(url, PostgresUrl):
        folder = Path(url.path).absolute().parent
        if not folder.is_dir():
            raise InvalidInput(
                f"{folder} is no folder", "the scratch file lies beside the database", "correct the URL"
            )
        with private_sqlite(folder) as place:
            yield place
        return
    reach_postgres(url.conninfo, config.connect_timeout_s)
    _refuse_unfit(config, force)
    assert isinstance(config, Config)
    own = replace(config, schema=SCRATCH + secrets.token_hex(6), pool_max=max(10, config.pool_max))
    assert own.schema.startswith(SCRATCH)
    engine = with_bench(open_engine(own))
    try:
        store.migrate(engine, actor="fencerow bench")
        yield BenchDatabase("postgres", own, _about_server(own))
    finally:
        engine.run(_dropping())
        engine.close()


def with_bench(engine: AnyEngine) -> AnyEngine:
    """Teach an engine the statements of the bench."""
    if isinstance(engine, PostgresEngine):
        names, folder = postgres_names(engine.schema), "postgres"
    else:
        names, folder = sqlite_names(engine.prefix), "sqlite"
    engine.queries = engine.queries.joined(load(PACKAGE, folder, folder, names))
    return engine


@contextmanager
def _prepared(config: CoreConfig) -> Iterator[AnyEngine]:
    engine = with_bench(open_engine(config))
    try:
        store.migrate(engine, actor="fencerow bench")
        yield engine
    finally:
        engine.close()


@operation(alone=True)
def _dropping() -> Steps[None]:
    yield from execute("bench_drop")


@operation(writes="")
def _busy_workers(workers: str) -> Steps[int]:
    if not (yield from execute("bench_has_workers_table", workers=workers))[0][0]:
        return 0
    rows = yield from execute("bench_workers")
    return int(str(rows[0][0]))


def _refuse_unfit(config: CoreConfig, force: bool) -> None:
    engine = with_bench(open_engine(config))
    try:
        may_create, is_standby, *_ = engine.run(_asked("bench_may_create"))[0]
        busy = engine.run(_busy_workers(postgres_names(config.schema)("workers")))
    finally:
        engine.close()
    if is_standby:
        raise InvalidInput("the database is a standby", "the bench writes", "name the primary")
    if not may_create:
        raise InvalidInput(
            "this role may make no schema in the database",
            "the bench keeps its jobs in a schema of its own, which it drops at the end",
            "use a role with the CREATE privilege on the database, or leave out --url",
        )
    if busy and not force:
        raise InvalidInput(
            f"{busy} workers are at work on this database",
            "the bench loads the server for minutes, and the workers would spoil its numbers",
            "name another database, or say --force",
        )


def _about_server(config: CoreConfig) -> str:
    engine = with_bench(open_engine(config))
    try:
        _, _, version, fsync, synchronous = engine.run(_asked("bench_may_create"))[0]
    finally:
        engine.close()
    return f"PostgreSQL {version}, fsync={fsync}, synchronous_commit={synchronous}"
