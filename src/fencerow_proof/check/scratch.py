"""Databases to be spoilt: each run of a handler begins with a fresh copy of one that was set up once."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import quote

from fencerow.config import Config
from fencerow.core.store.connect import open_engine
from fencerow.db.engine import Engine
from fencerow.testing.pg_home import sweep
from fencerow_proof.check.state import Reader
from fencerow_proof.check.wire import Loaded

MEMORY = Path("/dev/shm")  # noqa: S108 (where it is there, files in it are in memory)
PREFIX = "fencerow-check-"
_owners: dict[Path, IO[str]] = {}


class Scratch(Protocol):
    """A place with a pattern, and one copy of it at a time."""

    folder: Path  # of the copy: what the handler may write

    @property
    def url(self) -> str:
        """Of the copy, or before `keep` of the pattern."""
        ...

    def keep(self) -> None:
        """What is there now is the pattern; nobody may be connected."""
        ...

    def fresh(self) -> None:
        """Throw the copy away, with whoever is connected, and make a new one."""
        ...

    def settle(self, backends: set[int]) -> None:
        """Wait until the server has ended what was left by a process that was killed."""
        ...

    def blocked(self, backends: set[int]) -> bool:
        """Whether each of these server processes waits for a lock that another holds."""
        ...

    def engine(self) -> Engine:
        """The director's own engine on the copy, or before `keep` on the pattern."""
        ...

    def reader(self) -> Reader:
        """A look at the user's tables."""
        ...

    def close(self) -> None: ...


class Lent:
    """The director's own engine on the copy: opened when it is wanted, closed before the copy goes."""

    def __init__(self, loaded: Loaded) -> None:
        # Who is held up here holds the lock for as long as the director wants, so it waits for none.
        self._config = replace(
            Config(), schema=loaded.schema, table_prefix=loaded.table_prefix, pool_max=2, busy_timeout_s=0.0
        )
        self._engine: Engine | None = None

    def on(self, url: str) -> Engine:
        """The engine; the url is that of the copy until `close`."""
        if self._engine is None:
            self._engine = open_engine(replace(self._config, url=url))
        return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def private_folder() -> Path:
    """A folder of this check's own, in memory if the machine can. What a killed check left there goes first."""
    parent = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
    sweep(parent, PREFIX)
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    _owners[made] = (made / "owner.lock").open("w")
    fcntl.flock(_owners[made], fcntl.LOCK_EX)  # held until the folder goes, or this process does
    return made


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _owners.pop(folder).close()


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{quote(str(path))}"
