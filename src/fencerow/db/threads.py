"""Threads for plain `def` handlers: daemons, so that a hung one cannot keep the process from ending.

The standard pool joins its threads at exit. Here a thread that was given up is forgotten: it ends with
the process, and the fence refuses whatever it still writes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from fencerow.db.service import soon
from fencerow.db.strikes import Striker

T = TypeVar("T")

Outcome = tuple[Any, BaseException | None]
# What is called, and who is told.
Work = tuple[Callable[[], Outcome], Callable[[Any, BaseException | None], None]]
Ending = Callable[[T | None, BaseException | None], None]
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

    def submit(
        self, call: Callable[[], T], striker: Striker, ending: Ending[T] | None = None
    ) -> asyncio.Future[T]:
        """Run `call` on a thread; while it runs, `striker` can raise an exception in it.

        `ending` ends what the call has opened, on the same thread, when nothing can strike any more. It is given what
        was raised, or None, and an error of its own takes that one's place.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._hand((partial(_outcome_of, call, striker, ending), partial(_tell, loop, future)))
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
            call, tell = work
            # Told here: what calls a call that fails is in the traceback, so it must not know the future.
            tell(*call())
            del work, call, tell
            with self._lock:
                if self._closed:
                    return
                self._idle.append(queue)


def _outcome_of(
    call: Callable[[], T], striker: Striker, ending: Ending[T] | None
) -> tuple[T | None, BaseException | None]:
    returned, error = striker.run(call)
    result = returned[0] if returned else None
    if ending is not None:
        try:
            ending(result, error)
        except BaseException as raised:
            error = raised
    striker.close_open(error)
    try:
        return result, error
    finally:
        del error  # see `Striker.run`


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

    soon(loop, settle)  # nobody to tell: the worker has gone, and the fence refuses what this thread did
