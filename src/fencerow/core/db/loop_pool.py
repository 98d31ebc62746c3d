"""The pool of an event loop: it is closed when the loop ends, if nobody has done so before."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import Context
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

CLOSE_S = 1.0


class LoopPool:
    """A pool and what waits for its end. A loop that ends cancels all that still runs in it, and so closes the pool.

    Without that such a loop may never end: psycopg's own workers can take the cancel for the answer to the connect
    that they were waiting for, and go on to wait for the next one that is wanted.
    """

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> None:
        self.pool = pool
        # A context of its own: the one of whoever opened the pool must not live as long.
        self._waiting = asyncio.create_task(self._wait(), name="fencerow-pool", context=Context())

    async def close(self) -> None:
        """Close the pool now."""
        self._waiting.cancel()
        await asyncio.wait([self._waiting])

    async def _wait(self) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            with suppress(asyncio.CancelledError):
                await self.pool.close(CLOSE_S)
