"""A process that holds the write lock of a SQLite file: says `locked`, and lets go when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Hold the lock from another process until the block ends, or that process does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, str(path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"locked\n"
        yield process
    finally:
        await process.communicate(b"let go\n")


def hold(path: str) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        sys.stdout.write("locked\n")
        sys.stdout.flush()
        sys.stdin.readline()
        connection.execute("ROLLBACK")


if __name__ == "__main__":
    hold(sys.argv[1])
