"""Connections to PostgreSQL: small pools for sync use, and as many again for each event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from psycopg import AsyncConnection, IsolationLevel
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from fencerow.db import cancelling
from fencerow.db.held import HeldConnection
from fencerow.db.loop_pool import LoopPool, LoopPools
from fencerow.db.pool_log import OURS, closed_meanwhile
from fencerow.db.pool_wait import aobtained
from fencerow.db.service import soon
from fencerow.db.thread_pools import IDLE_S, RECONNECT_S, REFUSES_WRITES, ThreadPools
from fencerow.db.watchdog import Watchdog, Watched

ANSWER_S = 0.005  # between two looks of who closes


class Pools(ThreadPools):
    """Opens connections when they are first needed: at most `pool_max` for threads, and for each event loop."""

    def _forget(self) -> None:
        super()._forget()
        self._apools: dict[asyncio.AbstractEventLoop, LoopPools] = {}
        self._tidying: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Close what was opened for sync use, and for event loops that do not run."""
        self._check_process()
        with self._lock:
            self._give_back(lambda opened: not opened.is_running)
            pools, self._pools = self._pools, {}
            watchdog, self._watchdog = self._watchdog, Watchdog(self._statement_timeout_s)
        for pool in pools.values():
            pool.close(1.0)
        watchdog.close()

    async def aclose(self) -> None:
        """Close what was opened for this event loop."""
        self._check_process()
        with self._lock:
            opened = self._apools.pop(asyncio.get_running_loop(), None)
        for each in opened.pools.values() if opened else ():
            await each.close()

    async def aanswered(self, timeout_s: float) -> None:
        """Wait until nobody waits in this event loop for the answer to what was begun, at most so long."""
        opened, until = self._apools.get(asyncio.get_running_loop()), time.monotonic() + timeout_s
        while opened is not None and any(each.at_hand.begun for each in opened.pools.values()):
            if time.monotonic() > until:
                return
            await asyncio.sleep(ANSWER_S)

    def _of_loop(self) -> LoopPools:
        """What is open for this event loop. A new one looks for those that were left, so that they do not add up."""
        loop = asyncio.get_running_loop()
        opened = self._apools.get(loop)
        if opened is None:
            with self._lock:
                self._give_back(lambda each: each.is_left)
                opened = self._apools[loop] = LoopPools(loop)
        opened.used()
        return opened

    def _give_back(self, which: Callable[[LoopPools], bool]) -> None:
        """Under the lock."""
        for loop, opened in list(self._apools.items()):
            if which(opened):
                del self._apools[loop]
                for pool in opened.pools.values():
                    _tell_later(loop, pool.at_hand.begun)
                opened.give_back()

    @asynccontextmanager
    async def aconnection(self, *, for_user: bool = False) -> AsyncIterator[AsyncConnection[Any]]:
        """`connection` in this event loop: one that is at hand, else one of the pool."""
        pool = await self._open_apool(for_user)
        held = await self._ataken(pool)
        connection = await self._aobtained(pool, for_user) if held is None else held.let_go()
        try:
            if not self.preparing.wanted:
                connection.prepare_threshold = None
            yield connection
        except REFUSES_WRITES:
            await connection.close()
            await self._adrain(pool)
            raise
        finally:
            self._used_at[connection] = time.monotonic()
            await self._aput_back(pool, connection)

    @asynccontextmanager
    async def aheld(self) -> AsyncIterator[HeldConnection]:
        """A connection of this event loop for one prepared statement of ours, watched. It is at hand again afterwards,
        unless somebody waits for one.

        Raises:
            Unavailable: none could be had in time.
        """
        pool = await self._open_apool(for_user=False)
        held = await self._ataken(pool) or await self._aheld(pool)
        try:
            yield held
        except REFUSES_WRITES:
            held.wire.close()
            await self._adrain(pool)
            raise
        finally:
            if not pool.at_hand.keep(held, is_fit=held.connection not in self._cancelled):
                await self._aput_back(pool, held.let_go())

    async def _ataken(self, pool: LoopPool) -> HeldConnection | None:
        """One that is at hand."""
        while (held := pool.at_hand.take()) is not None:
            if not self._is_held_doubtful(held):
                return held
            await self._aput_back(pool, held.let_go())  # it comes from the pool when it has answered
        return None

    async def _aobtained(self, pool: LoopPool, for_user: bool) -> AsyncConnection[Any]:
        at_hand, check = pool.at_hand, self._acheck if for_user else self._acheck_ours
        at_hand.waiting += 1
        try:
            return await aobtained(pool.pool, check, self._wait_s(for_user), lambda: at_hand.is_over)
        except PoolTimeout as error:
            raise (closed_meanwhile() if at_hand.is_over else self._unreachable()) from error
        finally:
            at_hand.waiting -= 1

    async def _aheld(self, pool: LoopPool) -> HeldConnection:
        connection = await self._aobtained(pool, for_user=False)
        try:
            watched = self.awatched(connection)
            try:
                watched.begin()
                prepared, loop = self.preparing.of(connection), asyncio.get_running_loop()
                return HeldConnection(connection, prepared, watched, self._used_at, loop)
            except BaseException:  # no descriptor may be left
                watched.end()
                watched.close()
                raise
        except BaseException:
            await self._aput_back(pool, connection)
            raise

    def _is_held_doubtful(self, held: HeldConnection) -> bool:
        """`_is_doubtful` of what is at hand."""
        idle_s = time.monotonic() - held.used_at
        return idle_s > IDLE_S or held.used_at <= self._watchdog.gave_up_at or held.is_readable

    def begin(self) -> tuple[LoopPool, HeldConnection] | None:
        """What is at hand in this event loop and need not be asked first, watched; `end` it. None: see `aheld`."""
        self._check_process()
        opened = self._apools.get(asyncio.get_running_loop())
        pool = opened.pools.get(False) if opened is not None else None
        if pool is None:
            return None
        held = pool.at_hand.take()
        if held is None:
            return self._begin_behind(pool)
        if self._is_held_doubtful(held):
            self._tidy(self._aput_back(pool, held.let_go()))
            return None
        pool.at_hand.begun.add(held)
        return pool, held

    def _begin_behind(self, pool: LoopPool) -> tuple[LoopPool, HeldConnection] | None:
        """It is watched already, and readable at any moment."""
        held = pool.at_hand.take_behind()
        if held is None:
            return None
        if held.connection in self._cancelled or held.used_at <= self._watchdog.gave_up_at:
            pool.at_hand.leave_behind(held)
            return None
        return pool, held

    def end(self, pool: LoopPool, held: HeldConnection, error: BaseException | None = None) -> None:
        """What `begin` gave is in use no more, but for a wake-up that is not answered yet; this is how it ended."""
        refused = error is not None and isinstance(error, REFUSES_WRITES)
        if refused:
            held.wire.close()
        if held.wire.is_quiet:
            self._end(pool, held)
        else:
            held.used_at = time.monotonic()
            pool.at_hand.leave_behind(held)
        if refused:
            self._tidy(self._adrained(pool, pool.at_hand.drain()))

    def end_behind(self, pool: LoopPool, held: HeldConnection) -> None:
        """A wake-up is answered: unless something was sent behind it, the connection is in use no more."""
        if pool.at_hand.come_behind(held):
            self._end(pool, held)

    def _end(self, pool: LoopPool, held: HeldConnection) -> None:
        pool.at_hand.begun.discard(held)
        if not pool.at_hand.keep(held, is_fit=held.connection not in self._cancelled):
            self._tidy(self._aput_back(pool, held.let_go()))

    def _tidy(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tidying.add(task)
        task.add_done_callback(self._tidying.discard)

    async def _aput_back(self, pool: LoopPool, connection: AsyncConnection[Any]) -> None:
        if connection in self._cancelled:
            await connection.close()
        await pool.pool.putconn(connection)

    async def _adrain(self, pool: LoopPool) -> None:
        await self._adrained(pool, pool.at_hand.drain())

    async def _adrained(self, pool: LoopPool, closed: Sequence[AsyncConnection[Any]]) -> None:
        for each in closed:
            await pool.pool.putconn(each)
        await pool.pool.drain()

    async def _open_apool(self, for_user: bool) -> LoopPool:
        self._check_process()
        opened = self._of_loop()
        pools = opened.pools
        if for_user in pools and pools[for_user].is_broken_off:
            pools.pop(for_user).leave()
        if for_user not in pools:
            pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
                self._conninfo,
                kwargs={"autocommit": True, "prepare_threshold": None, **self.client_settings()},
                min_size=0,
                max_size=self._user_max if for_user else self._pool_max,
                num_workers=1,
                open=False,
                name=self._name,
                reconnect_timeout=RECONNECT_S,
                configure=partial(self._aconnected, opened),
            )
            self._opened.add(pool)
            pools[for_user] = LoopPool(pool)
        found = pools[for_user]
        if not found.opening.done():
            await asyncio.wait([found.opening])
        return found

    def awatched(self, connection: AsyncConnection[Any], *, limit_s: float | None = None) -> Watched:
        """`watched` in this event loop."""
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            self._cancelled.add(connection)
            cancelling.acancel(connection, loop)

        return self._watchdog.watch(connection.fileno(), cancel, limit_s=limit_s)

    async def _acheck(self, connection: AsyncConnection[Any]) -> None:
        if self._is_doubtful(connection):
            with self._asking(connection):
                await AsyncConnectionPool.check_connection(connection)

    async def _acheck_ours(self, connection: AsyncConnection[Any]) -> None:
        if connection in self._used_at:
            await self._acheck(connection)
            return
        with self._watched_check(connection) as watched:
            watched.busy()
            await self.preparing.ameet(connection)

    async def _aconnected(self, opened: LoopPools, connection: AsyncConnection[Any]) -> None:
        OURS.connected(self._name, connection)
        opened.connected(connection)
        await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)


def _tell_later(loop: asyncio.AbstractEventLoop, begun: set[HeldConnection]) -> None:
    """Who began something in a loop that does not run hears that it was cancelled as soon as it runs again."""
    while begun and not loop.is_closed():
        held = begun.pop()
        held.watched.end()
        held.let_go()
        soon(loop, partial(held.wire.give_up, tell=True))
