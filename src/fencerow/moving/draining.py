"""Waiting until no job runs in the file that is to be closed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from fencerow.core.config import CoreConfig
from fencerow.core.worker.plain import Worker
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.text import amount
from fencerow.moving.errors import MoveRefused
from fencerow.moving.source import count_running

LOOK_S = 0.1
QUEUE = "fencerow.move"  # nobody submits there


def drain(
    engine: SqliteEngine, config: CoreConfig, wait_s: float, running_now: Callable[[int], object]
) -> None:
    """Wait until no worker has a job any more.

    Raises:
        MoveRefused: some still run after so many seconds. They go on, and nobody takes another.
    """
    if engine.run(count_running()):
        asyncio.run(_drain(engine, config, wait_s, running_now))


async def _drain(
    engine: SqliteEngine, config: CoreConfig, wait_s: float, running_now: Callable[[int], object]
) -> None:
    """A worker stands by that runs nothing: it takes back what dead workers hold, once their leases have ended."""
    by = time.monotonic() + wait_s
    worker = Worker(engine, {}, [QUEUE], config, name="fencerow move")
    await worker.start()
    try:
        while running := await engine.arun(count_running()):
            running_now(running)
            if time.monotonic() > by:
                raise MoveRefused(
                    f"{amount(running, 'job')} still {'runs' if running == 1 else 'run'} after {wait_s:g} s",
                    "a job that runs may not be moved; no other is begun meanwhile",
                    "run the same command again to wait on; `fencerow move --reopen` lets jobs begin here again",
                )
            await asyncio.sleep(LOOK_S)
    finally:
        await worker.stop()
