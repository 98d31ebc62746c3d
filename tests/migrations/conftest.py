"""Databases of a user's own, which know nothing of Fencerow, and folders of steps."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.conftest import ROLE
from tests.kit.databases import scratch_folder

_numbers = itertools.count(1)
ROUNDS = ("sqlite", "postgres")


@dataclass
class Ground:
    """Empty databases of one dialect, and a folder in which a test writes its steps."""

    dialect: str
    folder: Path
    urls: dict[str, str]
    looking: dict[str, psycopg.Connection[Any]] = field(default_factory=dict)

    def write(self, files: Mapping[str, str]) -> None:
        """Write steps; an empty text removes one."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text:
                path.write_text(text)
            else:
                path.unlink(missing_ok=True)

    def rows(self, text: str, shard: str = "a") -> list[Any]:
        """Run a statement on a shard."""
        url = self.urls[shard]
        if self.dialect == "postgres":
            if shard not in self.looking:
                self.looking[shard] = psycopg.connect(url, autocommit=True, prepare_threshold=None)
            cursor = self.looking[shard].execute(text.encode())
            return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as lite:
            return lite.execute(text).fetchall()

    def ledger(self, shard: str = "a") -> list[tuple[int, str]]:
        return [
            tuple(row)
            for row in self.rows("SELECT version, state FROM schema_ledger ORDER BY version", shard)
        ]

    def has(self, table: str, shard: str = "a") -> bool:
        """Whether a table is there."""
        where = (
            f"SELECT to_regclass('{table}') IS NOT NULL"
            if self.dialect == "postgres"
            else f"SELECT count(*) FROM sqlite_master WHERE name = '{table}'"
        )
        return bool(self.rows(where, shard)[0][0])


@pytest.fixture(params=ROUNDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    """Four empty databases, a to d."""
    yield from made(request, request.param, tmp_path / "steps")


@pytest.fixture
def pg_ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    """The same on PostgreSQL alone."""
    yield from made(request, "postgres", tmp_path / "steps")


def made(request: pytest.FixtureRequest, dialect: str, folder: Path) -> Iterator[Ground]:
    folder.mkdir()
    if dialect == "sqlite":
        with scratch_folder() as place:
            yield Ground(dialect, folder, {name: f"sqlite:///{place}/{name}.db" for name in "abcd"})
        return
    server: PostgresServer = request.getfixturevalue("server")
    databases: Mapping[str, str] = request.getfixturevalue("shard_databases")
    for database in databases.values():
        with server.connect(database) as owner:
            owner.execute("SET client_min_messages = error")
            owner.execute("DROP SCHEMA IF EXISTS public CASCADE")
            owner.execute(f"CREATE SCHEMA public AUTHORIZATION {ROLE}".encode())
    pooler: PgBouncer | None = request.getfixturevalue("pooler")
    urls = {name: (pooler or server).conninfo(database, ROLE) for name, database in databases.items()}
    ground = Ground(dialect, folder, urls)
    yield ground
    for connection in ground.looking.values():
        connection.close()


@pytest.fixture(scope="session")
def shard_databases(server: PostgresServer) -> Iterator[Mapping[str, str]]:
    """Four databases; each test finds them empty."""
    number = next(_numbers)  # of those who import this fixture
    names = {name: f"shard_{number}_{name}" for name in "abcd"}
    for database in names.values():
        server.create_role_and_schema(role=ROLE, database=database)
    yield names
    for database in names.values():
        server.drop_database(database)
