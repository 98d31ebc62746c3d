"""Tasks that are left to themselves: nobody waits for them any more, and they come to their end all the same.

The event loop keeps only weak references to tasks, so one that nobody holds may be collected while it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")

_left: set[asyncio.Future[Any]] = set()


async def done_by(until: float, work: Awaitable[T], *, goes_on: bool = False) -> asyncio.Future[T] | None:
    """The work, done by then in the loop's time; else None, and it is cancelled, unless it `goes_on`. The same when the
    caller is cancelled while it waits.

    It is not waited for how long that takes: a database that is silent answers no cancellation either.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=max(0.0, until - asyncio.get_running_loop().time()))
    finally:
        if not task.done():
            if not goes_on:
                task.cancel()
            leave(task)
    return task if task.done() else None


def leave(task: asyncio.Future[Any]) -> None:
    """Keep a task alive until it ends; how it ends is no news to anybody."""
    _left.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Future[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()  # so that asyncio does not tell of it
