"""Six processes submit to one SQLite file and work on it at once: each gets its turn, and none is told it is busy."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

PROCESSES, EACH = 6, 100
PROGRAM = """
import asyncio, sys
from fencerow import App

app = App(sys.argv[1])

@app.job
async def note(number: int) -> int:
    return number

async def main() -> None:
    async with app, app.worker(slots=10):
        for number in range(int(sys.argv[2])):
            await note.asubmit(number)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@pytest.mark.prove
async def test_six_processes_on_one_file_are_never_told_that_it_is_busy(migrated_path: Path) -> None:
    members = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, f"sqlite:///{migrated_path}", str(EACH),
            stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    told = [err.decode() for _, err in await asyncio.gather(*(each.communicate(b"") for each in members))]

    assert [each.returncode for each in members] == [0] * PROCESSES, told
    assert not any("Busy" in each or "stayed locked" in each for each in told), told
    with closing(sqlite3.connect(migrated_path)) as file:
        (stored,) = file.execute(
            "SELECT (SELECT count(*) FROM fencerow_jobs) + (SELECT count(*) FROM fencerow_finished_jobs)"
        ).fetchone()
    assert stored == PROCESSES * EACH
