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
# A future, a coroutine or the loop would take these as its own.
UNCARRIED = (StopIteration, GeneratorExit, KeyboardInterrupt)


class NoThread(RuntimeError):
    """The system refuses another thread: the call has not begun, and that is not the handler's fault."""


class Threads:
    """Runs calls on reused daemon threads, as many as are needed at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[Work | None]] = []
        self._lock = threading.Lock()
        self._count = 0
        self._closed = False

    def submit(self, call: Callable[[], T], striker: Striker) -> asyncio.Future[T]:
        """Run `call` on a thread; until it is over, `striker` can raise one exception in it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._hand(lambda: _tell(loop, future, *_outcome_of(call, striker)))
        return future

    def close(self) -> None:
        """Let the idle threads end, and the busy ones after their call."""
        with self._lock:
            self._closed = True
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
        thread = threading.Thread(
            target=self._serve, args=(queue,), name=f"{self._name}-{number}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            raise NoThread(f"no thread for a handler: {error}") from error

    def _serve(self, queue: SimpleQueue[Work | None]) -> None:
        while (work := queue.get()) is not None:
            work()
            with self._lock:
                if self._closed:
                    return
                self._idle.append(queue)


class Striker:
    """Raises an exception in the thread that runs one call, at most once, and never after the call is over.

    Without the lock a late exception would strike the next job on the same thread, or the thread itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ident: int | None = None
        self._struck = False

    def arm(self) -> None:
        """This thread runs the call from now on."""
        with self._lock:
            self._ident = threading.get_ident()

    def disarm(self) -> None:
        """The call is over: nothing may strike any more, and what has not struck yet is taken back."""
        with self._lock:
            ident, self._ident = self._ident, None
            if ident is not None:
                _set_exception(ident, None)

    def strike(self, error: type[BaseException]) -> bool:
        """Raise at the thread's next Python instruction; false when there is nothing to strike.

        Code that waits in C (a lock, a socket, a long query) sees it only when it comes back. The class is
        instantiated without arguments.
        """
        with self._lock:
            if self._ident is None or self._struck:
                return False
            self._struck = True
            return _set_exception(self._ident, error)


def _outcome_of(call: Callable[[], T], striker: Striker) -> tuple[T | None, BaseException | None]:
    result: T | None = None
    error: BaseException | None = None
    try:
        try:
            striker.arm()
            result = call()
        except BaseException as raised:
            error = raised
        striker.disarm()
    except BaseException as late:  # it struck between the lines above; a second one never comes
        striker.disarm()
        if result is None and error is None:
            error = late
    return result, error


def _set_exception(ident: int, error: type[BaseException] | None) -> bool:
    held = None if error is None else ctypes.py_object(error)
    return bool(ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), held))


def _tell(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: object, error: BaseException | None
) -> None:
    def settle() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, UNCARRIED):
            future.set_exception(RuntimeError(f"the handler raised {error!r}"))
        else:
            future.set_exception(error)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        pass  # the loop is closed: the worker has gone, and the fence refuses what this thread did
