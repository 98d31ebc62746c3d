"""A thread that makes the calls of event loops which must not wait for a disk, for a lock or for a process to start.

What an executor does, with less around each call: one future, one message there, and one back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeVar, TypeVarTuple

from fencerow.db.begun import Over, settle
from fencerow.db.service import Service, soon

T = TypeVar("T")
Given = TypeVarTuple("Given")


class OneThread:
    """Does one call after the other, in the order in which they came. The first one starts the thread."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._service = Service(name, self._turn)
        self._lock = threading.Lock()
        self._closed = False

    def call(self, function: Callable[[*Given], T], *given: *Given) -> asyncio.Future[T]:
        """Its answer, for the event loop that runs here. Who cancels the future is not told, and the call is made.

        Raises:
            RuntimeError: it is closed, or the system refuses a thread. Nothing is done.
        """
        answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.begin(partial(settle, answered), function, *given)
        return answered

    def begin(self, over: Over, function: Callable[[*Given], object], *given: *Given) -> None:
        """Have `over` called with its answer or its error by the event loop that runs here. Raises as `call`."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise RuntimeError("the thread was closed")
            self._service.need()
            self._calls.put(lambda: _answer(loop, over, function, given))

    def close(self, timeout_s: float | None = None) -> None:
        """Do what was asked, and end the thread: wait for it, at most so many seconds."""
        with self._lock:
            self._closed = True
            self._calls.put(None)
        self._service.join(timeout_s)

    def _turn(self) -> bool:
        call = self._calls.get()
        if call is None:
            return False
        call()
        return True


def _answer(
    loop: asyncio.AbstractEventLoop, over: Over, function: Callable[[*Given], object], given: tuple[*Given]
) -> None:
    try:
        answer = function(*given)
    except BaseException as error:
        soon(loop, over, None, error)
    else:
        soon(loop, over, answer, None)
