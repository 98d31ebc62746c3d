"""A PostgreSQL server that begins with a copy: to make its files anew costs a second of a processor for each server."""

from __future__ import annotations

import atexit
import fcntl
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fencerow.testing.pg_home import sweep
from fencerow.testing.postgres import PostgresServer, find_binaries

PREFIX = "fencerow-made-"
OWNER = "owner.lock"  # held until this process ends
PASSWORD = "password"  # the name of a file
# As the run began. A test may take variables away, and be the first to ask for a server that others use after it.
ENVIRONMENT = dict(os.environ)


@cache
def binaries() -> Path:
    """The PostgreSQL of this process of tests: one, whichever test asks first."""
    return find_binaries(ENVIRONMENT)


class CopiedServer(PostgresServer):
    """As `PostgresServer`, with files that `initdb` has made once for this process, before any server ran on them.

    All copies have the same identifier and the same password: where servers are told apart, or where the making
    is the subject, take a real one.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"binaries": binaries(), **options})

    def _fill(self) -> None:
        made = _kept()
        if not (made / PASSWORD).exists():
            super()._fill()
            _copy(self.data, made / "data")
            (made / PASSWORD).write_text(self.password)
        else:
            _copy(made / "data", self.data)
            self.password = (made / PASSWORD).read_text()


@cache
def _kept() -> Path:
    """Where this process keeps them until its end. What a killed one left goes first, as with servers themselves."""
    sweep(Path(tempfile.gettempdir()), PREFIX)
    made = tempfile.TemporaryDirectory(prefix=PREFIX)
    owner = (Path(made.name) / OWNER).open("w")
    fcntl.flock(owner, fcntl.LOCK_EX)
    atexit.register(owner.close)
    atexit.register(made.cleanup)
    return Path(made.name)


def _copy(source: Path, target: Path) -> None:
    """With its owner and its modes, as the server wants them."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
