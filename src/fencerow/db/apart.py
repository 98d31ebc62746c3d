"""Tasks that stand apart from their callers: nobody who waits for one cancels it.

An engine runs each operation in a task of its own, so that a cancelled caller leaves no statement half read. Whoever
stands apart already needs no second one, which costs two turns of the event loop and a tenth of a submit's Python.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_apart: WeakSet[asyncio.Task[Any]] = WeakSet()


def apart(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Run it in a task that is never handed out to be cancelled: only the end of the event loop does that.

    Keep the task: the event loop does not.
    """
    task = asyncio.create_task(work)
    _apart.add(task)
    return task


def standing_apart() -> asyncio.Task[Any] | None:
    """The task that is running, if it stands apart."""
    task = asyncio.current_task()
    return task if task in _apart else None
