"""Waiting for a connection of a pool that answers.

The pool gives up reconnecting after a while and tries again only when somebody new asks. One who waited in a single
long call would sleep on beside a server that is back, so the wait is made of slices.

Whether a connection answers is asked here and not by the pool: that rests for a second once it has found two that do
not. A server that ends idle sessions ends all of them, and those that come in their place would grow old meanwhile.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from psycopg import AsyncConnection, Connection, Error
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

WAIT_SLICE_S: Final = 0.5
SLICE_S_MIN: Final = 0.01
BETWEEN_ASKERS_S: Final = 0.02  # who ask again, on average, however many wait
NONE_CAME: Final = "no connection came in time"
REST_S: Final = 0.2  # after more than were idle have failed: new ones fail, too


def obtained(
    pool: ConnectionPool[Connection[Any]], check: Callable[[Connection[Any]], None], wait_s: float
) -> Connection[Any]:
    """A connection that has passed the check, to be put back. One that fails it is replaced at once.

    Raises:
        PoolTimeout: the whole wait has passed.
    """
    until, failed = time.monotonic() + wait_s, 0
    while True:
        connection = _taken(pool, until)
        try:
            check(connection)
        except Error:
            connection.close()
            pool.putconn(connection)
        except BaseException:
            pool.putconn(connection)
            raise
        else:
            return connection
        failed += 1
        time.sleep(_rest_s(failed, pool.max_size, until))


async def aobtained(
    pool: AsyncConnectionPool[AsyncConnection[Any]],
    check: Callable[[AsyncConnection[Any]], Awaitable[None]],
    wait_s: float,
    is_over: Callable[[], bool],
) -> AsyncConnection[Any]:
    """`obtained` for async code.

    Raises:
        PoolTimeout: the whole wait has passed, or it `is_over`: nobody puts one back any more.
    """
    until, failed = time.monotonic() + wait_s, 0
    while True:
        connection = await _ataken(pool, until, is_over)
        try:
            await check(connection)
        except Error:
            await connection.close()
            await pool.putconn(connection)
        except BaseException:
            await pool.putconn(connection)
            raise
        else:
            return connection
        failed += 1
        await asyncio.sleep(_rest_s(failed, pool.max_size, until))


def _taken(pool: ConnectionPool[Connection[Any]], until: float) -> Connection[Any]:
    for slice_s in _slices_s(pool, until):
        try:
            return pool.getconn(slice_s)
        except PoolTimeout:
            pass  # asked again, if there is time
    raise PoolTimeout(NONE_CAME)


async def _ataken(
    pool: AsyncConnectionPool[AsyncConnection[Any]], until: float, is_over: Callable[[], bool]
) -> AsyncConnection[Any]:
    for slice_s in _slices_s(pool, until):
        try:
            return await pool.getconn(slice_s)
        except PoolTimeout:
            if is_over():
                break
    raise PoolTimeout(NONE_CAME)


def _slices_s(pool: ConnectionPool[Any] | AsyncConnectionPool[Any], until: float) -> Iterator[float]:
    """How long to wait each time, until the wait is over. The pool is asked at least once."""
    slice_s = WAIT_SLICE_S
    while (left_s := until - time.monotonic()) > slice_s:
        yield slice_s
        slice_s = _next_slice_s(pool)
    yield max(SLICE_S_MIN, left_s)


def _next_slice_s(pool: ConnectionPool[Any] | AsyncConnectionPool[Any]) -> float:
    """Hundreds would use up a processor that is short of time by asking again, and none of them would be served."""
    waiting = pool.get_stats().get("requests_waiting", 0)
    return random.uniform(WAIT_SLICE_S, max(WAIT_SLICE_S, waiting * BETWEEN_ASKERS_S))  # noqa: S311 (jitter, not a secret)


def _rest_s(failed: int, idle_max: int, until: float) -> float:
    """How long to wait after so many that have failed.

    Raises:
        PoolTimeout: the whole wait has passed.
    """
    if time.monotonic() >= until:
        raise PoolTimeout(f"none of {failed} connections answered")
    return REST_S if failed > idle_max else 0.0
