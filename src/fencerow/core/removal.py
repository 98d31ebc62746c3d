"""Removing much in short transactions, without taking the database for itself."""

from __future__ import annotations

import asyncio
import time

from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Operation


async def removed(engine: Engine, removal: Operation[int], *, limit: int) -> int:
    """Repeat a removal of at most `limit` rows until it has caught up, half of the time at most; returns how many."""
    total = 0
    while True:
        began = time.monotonic()
        count = await engine.arun(removal)
        total += count
        if count < limit:
            return total
        await asyncio.sleep(time.monotonic() - began)
