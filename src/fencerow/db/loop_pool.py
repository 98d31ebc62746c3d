"""The pools of an event loop: they are closed when the loop ends, or given back when it is left without an end."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from contextlib import suppress
from contextvars import Context
from types import CoroutineType
from typing import Any
from weakref import WeakSet

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from fencerow.db.held import HELD_S, AtHand

CLOSE_S = 1.0
INTERRUPTS = (KeyboardInterrupt, SystemExit)


class LoopPool:
    """A pool and what waits for its end. A loop that ends cancels all that still runs in it, and so closes the pool.

    Without that such a loop may never end: psycopg's own workers can take the cancel for the answer to the connect
    that they were waiting for, and go on to wait for the next one that is wanted.
    """

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> None:
        self.pool = pool
        self.at_hand = AtHand()
        # Contexts of their own: the one of whoever asked first must not live as long, and the pool's workers do.
        self.opening = asyncio.create_task(pool.open(), name=f"{pool.name}-opening", context=Context())
        self._waiting = asyncio.create_task(self._wait(), name="fencerow-pool", context=Context())
        self._tasks = [self._waiting]
        self.opening.add_done_callback(self._opened)

    def _opened(self, _: asyncio.Task[None]) -> None:
        self._tasks += [
            each for each in asyncio.all_tasks() if each.get_name().startswith(f"{self.pool.name}-")
        ]

    @property
    def is_broken_off(self) -> bool:
        """Whether an interrupt of the program ended one of its tasks: it opens no connection any more."""
        ended = [each for each in self._tasks if each.done() and not each.cancelled()]
        return any(isinstance(each.exception(), INTERRUPTS) for each in ended)

    def leave(self) -> None:
        """Another one takes its place. What is in use is closed when it comes back."""
        self.at_hand.is_over = True
        self.at_hand.drain()
        if not self.at_hand.begun:  # else they would hear of a cancel
            self._waiting.cancel()

    async def close(self) -> None:
        """Close the pool now."""
        self._waiting.cancel()
        await asyncio.wait([self._waiting])

    async def put_back(self, *, before: float = math.inf) -> None:
        """Give those at hand back to the pool that nobody has used since then."""
        for each in self.at_hand.taken_back(before=before):
            await self.pool.putconn(each)

    def throw_away(self, loop: asyncio.AbstractEventLoop) -> None:
        """End its tasks in a loop that does not run. Left to the garbage collector, they would complain loudly."""
        for task in asyncio.all_tasks(loop):
            if task is self._waiting or task.get_name().startswith(f"{self.pool.name}-"):
                # There is no public way: a cancel needs the loop to run, and its exception handler is the user's.
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
                coroutine = task.get_coro()
                if isinstance(coroutine, CoroutineType):
                    coroutine.close()

    async def _wait(self) -> None:
        try:
            while True:
                await asyncio.sleep(HELD_S)
                await self.put_back(before=time.monotonic() - HELD_S)
        except asyncio.CancelledError:  # not `finally`: a task that is thrown away can wait no more
            self.at_hand.drop(tell=True)
            is_broken_off = self.is_broken_off
            try:
                with suppress(asyncio.CancelledError):
                    # Of one that was broken off the end tells of the interrupt again, and closes nothing.
                    while is_broken_off and self.pool.get_stats().get("pool_available"):
                        await (await self.pool.getconn(CLOSE_S)).close()
                    await self.pool.close(CLOSE_S)
            except INTERRUPTS:
                if not is_broken_off:
                    raise
            raise


class LoopPools:
    """What was opened for one event loop: ours, and (True) the users'.

    A loop that nobody closes, or that is closed while tasks of it wait, cancels nothing, so nothing in it closes a
    pool.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pools: dict[bool, LoopPool] = {}
        self._connections: WeakSet[AsyncConnection[Any]] = WeakSet()
        self._loop = loop
        self._thread = threading.current_thread()

    def used(self) -> None:
        """It runs in this thread now."""
        self._thread = threading.current_thread()

    def connected(self, connection: AsyncConnection[Any]) -> None:
        """Note a connection of these pools."""
        self._connections.add(connection)

    @property
    def is_running(self) -> bool:
        return self._loop.is_running()

    @property
    def is_left(self) -> bool:
        """Whether the loop is closed, or does not run and its thread has ended. If it runs again, it opens others."""
        return self._loop.is_closed() or not (self.is_running or self._thread.is_alive())

    def give_back(self) -> None:
        """Close the connections from another thread: the loop does not run, so nobody uses them."""
        for pool in self.pools.values():
            pool.at_hand.drop(tell=False)
        for each in list(self._connections):
            each.pgconn.finish()
        if not self._loop.is_closed():
            for pool in self.pools.values():
                pool.throw_away(self._loop)
