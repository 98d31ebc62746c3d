"""What the frames of an event loop's thread tell of the loop, to another thread that looks at them."""

from __future__ import annotations

import asyncio
import gc
import sys
from contextvars import Context
from types import FrameType
from typing import Any


def waits_for_events(frame: FrameType | None, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a thread that stands there waits in this loop for what comes next, and not in code that the loop runs.

    Of a loop that is not written in Python nobody can say so.
    """
    turn = frame.f_back if frame is not None and frame.f_code.co_name == "select" else None
    if turn is None or turn.f_code is not asyncio.BaseEventLoop._run_once.__code__:  # type: ignore[attr-defined]
        return False
    return turn.f_locals.get("self") is loop


def context_in(frame: FrameType | None, loop: asyncio.AbstractEventLoop) -> Context | None:
    """The context in which the loop, whose thread stands there, runs a task or callback; None: it is not known.

    A loop that is not written in Python, as uvloop's, shows no handle: it tells of its task, and of a callback nothing.
    """
    while frame is not None:
        handle = frame.f_locals.get("self") if frame.f_code is asyncio.Handle._run.__code__ else None
        if isinstance(handle, asyncio.Handle):
            return handle._context  # type: ignore[attr-defined, no-any-return]
        frame = frame.f_back
    task = asyncio.current_task(loop)
    return None if task is None else _context_of(task)


def _context_of(task: asyncio.Task[Any]) -> Context | None:
    if sys.version_info >= (3, 12):
        return task.get_context()
    # Nobody can ask it there. What it refers to begins with its own; those of its callbacks come later.
    return next((each for each in gc.get_referents(task) if isinstance(each, Context)), None)
