"""Waiting for a connection of a pool, in slices.

The pool gives up reconnecting after a while and tries again only when somebody new asks. One who waited in a single
long call would sleep on beside a server that is back.
"""

from __future__ import annotations

import time
from typing import Any, Final

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

WAIT_SLICE_S: Final = 0.5
SLICE_S_MIN: Final = 0.01


def obtained(pool: ConnectionPool[Connection[Any]], wait_s: float) -> Connection[Any]:
    """A connection, to be put back.

    Raises:
        PoolTimeout: the whole wait has passed.
    """
    until = time.monotonic() + wait_s
    while True:
        left_s = until - time.monotonic()
        try:
            return pool.getconn(max(SLICE_S_MIN, min(WAIT_SLICE_S, left_s)))
        except PoolTimeout:
            if left_s <= WAIT_SLICE_S:
                raise


async def aobtained(pool: AsyncConnectionPool[AsyncConnection[Any]], wait_s: float) -> AsyncConnection[Any]:
    """`obtained` for async code."""
    until = time.monotonic() + wait_s
    while True:
        left_s = until - time.monotonic()
        try:
            return await pool.getconn(max(SLICE_S_MIN, min(WAIT_SLICE_S, left_s)))
        except PoolTimeout:
            if left_s <= WAIT_SLICE_S:
                raise
