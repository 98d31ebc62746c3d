"""A worker with a backfill, which may be killed in the middle of a range.

Run as `python -m tests.migrations.backfills.member`.

DIE names where: `write:3` after the writes of the third range, before their commit; `between:3` before it. Then the
file DIED is there, so that whoever comes after lives.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from fencerow import App, Config
from fencerow.migrations import Backfill
from tests.migrations.backfills.test_backfill import mark

QUICK = Config(lease_s=1.0, renew_s=0.2, sweep_s=0.2, poll_min_s=0.01, poll_max_s=0.05)
app = App(config=QUICK, actor="ada")
count = [0]


def fill(connection: Any, first: int, last: int) -> None:
    count[0] += 1
    die("between")
    mark(connection, first, last)
    die("write")


def die(where: str) -> None:
    died = Path(os.environ["DIED"])
    if os.environ["DIE"] == f"{where}:{count[0]}" and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)


marks = Backfill(app, "marks", fill, table="messages", key="id", batch_rows=10)


async def main() -> None:
    async with app.worker():
        while (await marks.astatus()).state == "running":
            await asyncio.sleep(0.05)
    await app.aclose()


if __name__ == "__main__":
    from tests.migrations.backfills.member import main as imported

    asyncio.run(imported())
