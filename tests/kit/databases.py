"""A fresh migrated database or file for each test, made as a copy: to migrate each would cost more than most tests."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, LiteralString

import psycopg
from psycopg.rows import TupleRow

from fencerow.testing.pg_home import sweep
from fencerow.testing.postgres import PostgresServer

MEMORY = Path("/dev/shm")
PREFIX = "fencerow-test-"
OWNER = "owner.lock"


class Superuser:
    """One connection that makes and drops databases for all tests of a pytest process.

    To connect for each of them took a third of the processor time that a database costs.
    """

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._connection: psycopg.Connection[TupleRow] | None = None

    def make(self, name: str, template: str) -> None:
        """As `PostgresServer.create_database` does it. The name is one of ours, and needs no quotes."""
        self.rows(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")

    def drop(self, name: str) -> None:
        """Drop a database, ending whoever is connected to it."""
        self.rows(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def rows(self, text: LiteralString, values: Sequence[object] = ()) -> list[TupleRow]:
        """Ask on the connection that is open; anew where a test has ended that, or its server."""
        connection = self._living()
        found = connection.execute(text, values)
        return found.fetchall() if found.description else []

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _living(self) -> psycopg.Connection[TupleRow]:
        if self._connection is not None:
            try:
                self._connection.execute("SELECT")
            except psycopg.OperationalError:
                self.close()
        if self._connection is None:
            self._connection = self.server.connect()
        return self._connection


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for files of SQLite, in memory if the machine can; it is gone afterwards."""
    made = Path(tempfile.mkdtemp(dir=_ours()))
    try:
        yield made
    finally:
        shutil.rmtree(made)


@cache
def _ours() -> Path:
    """The folder of all that this process scratches, gone at its end. What a killed one left in memory goes first."""
    parent = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
    sweep(parent, PREFIX)
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    made.chmod(0o711)  # a test may open one of its folders for others
    owner = (made / OWNER).open("w")
    fcntl.flock(owner, fcntl.LOCK_EX)  # held until this process ends, however it ends
    atexit.register(_remove, made, os.getpid(), owner)
    return made


def _remove(made: Path, maker: int, owner: IO[str]) -> None:
    owner.close()
    if os.getpid() == maker:  # a fork has our exit handlers, too
        shutil.rmtree(made, ignore_errors=True)


def copy_files(template: Path, path: Path) -> None:
    """Copy a SQLite database that nobody has open: the file, and what lies beside it under its name."""
    for each in template.parent.iterdir():
        shutil.copyfile(each, path.with_name(path.name + each.name.removeprefix(template.name)))
