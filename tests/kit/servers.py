"""PostgreSQL servers that begin with a copy: to make their files anew costs a second of a processor for each server,
and to migrate a database half a second."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.pg_home import sweep
from fencerow.testing.postgres import PostgresServer, find_binaries

PREFIX = "fencerow-made-"
OWNER = "owner.lock"  # held until this process and its forks end
FILLING = "filling.lock"
MIGRATING = "migrating.lock"
TEMPLATE = "migrated"  # a database that nobody is ever connected to
ROLE = "app"  # no superuser: it owns its schema and nothing else
PASSWORD = "password"  # the name of a file
# As the run began. A test may take variables away, and be the first to ask for a server that others use after it.
ENVIRONMENT = dict(os.environ)


@cache
def binaries() -> Path:
    """The PostgreSQL of this process of tests: one, whichever test asks first."""
    return find_binaries(ENVIRONMENT)


class CopiedServer(PostgresServer):
    """As `PostgresServer`, with files of which a copy was kept before any server ran on them.

    `initdb` makes them once for this process and its forks. All copies have the same identifier and the same password:
    where servers are told apart, or where the making is the subject, take a real one.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"binaries": binaries(), **options})

    def _fill(self) -> None:
        made = kept()
        with (made / FILLING).open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # of several forks one makes them
            if not (made / PASSWORD).exists():
                super()._fill()
                _copy(self.data, made / "data")
                (made / PASSWORD).write_text(self.password)
                return
        _copy(made / "data", self.data)
        self.password = (made / PASSWORD).read_text()


class MigratedServer(CopiedServer):
    """Which has the database TEMPLATE, whose schema belongs to ROLE: migrated once for this process and its forks."""

    def _fill(self) -> None:
        made = kept() / TEMPLATE
        with (kept() / MIGRATING).open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if not made.exists():
                _migrate(made)
        _copy(made, self.data)
        self.password = (kept() / PASSWORD).read_text()


def _migrate(target: Path) -> None:
    """Leave the files of a server that has ended in order."""
    with CopiedServer(fast=True) as server:
        engine = PostgresEngine(
            server.create_role_and_schema(role=ROLE, database=TEMPLATE), store.postgres_queries()
        )
        store.migrate(engine)
        engine.close()
        server.stop()
        half = target.with_name("half")
        _copy(server.data, half)
        half.rename(target)


@cache
def kept() -> Path:
    """Where this process, and the forks that it makes afterwards, keep them until its end.

    What a killed one left goes first, as with servers themselves.
    """
    sweep(Path(tempfile.gettempdir()), PREFIX)
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    owner = (made / OWNER).open("w")
    fcntl.flock(owner, fcntl.LOCK_EX)
    atexit.register(_remove, made, os.getpid(), owner)
    return made


def _remove(made: Path, maker: int, owner: IO[str]) -> None:
    owner.close()
    if os.getpid() == maker:  # a fork has our exit handlers, too
        shutil.rmtree(made, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """With its owner and its modes, as the server wants them."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
