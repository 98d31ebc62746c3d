"""Threads for plain `def` handlers: daemons, so that a hung one cannot keep the process from ending.

The standard pool joins its threads at exit. Here a thread that was given up is forgotten: it ends with
the process, and the fence refuses whatever it still writes.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

Work = Callable[[], None]


class Threads:
    """Runs calls on reused daemon threads, as many as are needed at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[Work | None]] = []
        self._lock = threading.Lock()
        self._count = 0

    def submit(self, call: Callable[[], T], started: Callable[[int], None]) -> asyncio.Future[T]:
        """Run `call` on a thread; `started` is told the thread's ident, on that thread, before the call."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            started(threading.get_ident())
            try:
                result = call()
            except BaseException as error:
                _tell(loop, future, None, error)
            else:
                _tell(loop, future, result, None)

        self._hand(work)
        return future

    def close(self) -> None:
        """Let the idle threads end. Busy ones end with the process."""
        with self._lock:
            for queue in self._idle:
                queue.put(None)
            self._idle.clear()

    def _hand(self, work: Work) -> None:
        with self._lock:
            if self._idle:
                self._idle.pop().put(work)
                return
            self._count += 1
            number = self._count
        queue: SimpleQueue[Work | None] = SimpleQueue()
        queue.put(work)
        threading.Thread(
            target=self._serve, args=(queue,), name=f"{self._name}-{number}", daemon=True
        ).start()

    def _serve(self, queue: SimpleQueue[Work | None]) -> None:
        while (work := queue.get()) is not None:
            work()
            with self._lock:
                self._idle.append(queue)


def raise_in_thread(ident: int, error: type[BaseException]) -> bool:
    """Raise an exception in a thread at its next Python instruction; false when there is no such thread.

    Code that waits in C (a lock, a socket, a long query) sees it only when it comes back.
    """
    return bool(ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(error)))


def _tell(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: object, error: BaseException | None
) -> None:
    def settle() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration):  # a future cannot carry it
            future.set_exception(RuntimeError(f"the handler raised {error!r}"))
        else:
            future.set_exception(error)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        pass  # the loop is closed: the worker has gone, and the fence refuses what this thread did
