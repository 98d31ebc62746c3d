"""A scratch database of SQLite files: a folder, copied for each run."""

from __future__ import annotations

import shutil
from pathlib import Path

from fencerow.db.engine import Engine
from fencerow_proof.check.scratch import Lent, sqlite_url
from fencerow_proof.check.state import Reader
from fencerow_proof.check.state_sqlite import SqliteReader
from fencerow_proof.check.wire import Loaded

MAIN = "jobs.db"


class SqliteScratch:
    """A folder with the pattern and a folder with the copy. Every file that the handler opens lies in it."""

    def __init__(self, parent: Path, loaded: Loaded) -> None:
        self._pattern = parent / "pattern"
        self._copy = parent / "copy"
        self._prefix = loaded.table_prefix
        self._lent = Lent(loaded)
        self.folder = self._pattern
        self.folder.mkdir()

    @property
    def url(self) -> str:
        return sqlite_url(self.folder / MAIN)

    def keep(self) -> None:
        self._lent.close()
        self.folder = self._copy

    def fresh(self) -> None:
        self._lent.close()
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._pattern, self._copy)

    def settle(self, backends: set[int]) -> None:
        """The system freed a dead process's locks; the next who opens the file rolls its transaction back."""

    def blocked(self, backends: set[int]) -> bool:  # noqa: ARG002 (there are none)
        return False  # a process that meets a locked file says so itself

    def engine(self) -> Engine:
        return self._lent.on(self.url)

    def reader(self) -> Reader:
        return SqliteReader(self._copy, self._prefix)

    def close(self) -> None:
        """The folder above is removed by whoever made it."""
        self._lent.close()
