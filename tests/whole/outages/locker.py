"""A process that holds the write lock of a SQLite file: says `locked`, and lets go when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Hold the lock from another process until the block ends, or that process does."""
    with await asyncio.to_thread(started, path) as process:
        assert process.stdout is not None
        try:
            assert await asyncio.to_thread(process.stdout.readline) == b"locked\n"
            yield process
        finally:
            await asyncio.to_thread(process.communicate, b"let go\n")


def started(path: Path) -> subprocess.Popen[bytes]:
    """Not by the event loop: a start by uvloop counts as a fork, for which our connections are closed."""
    command = [sys.executable, __file__, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def hold(path: str) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        sys.stdout.write("locked\n")
        sys.stdout.flush()
        sys.stdin.readline()
        connection.execute("ROLLBACK")


if __name__ == "__main__":
    hold(sys.argv[1])
