"""The worker that users get: `LoopWorker`, and what plain code uses of it, where it runs in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError, wait
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from fencerow.core.answering import answer
from fencerow.core.errors import InvalidInput, OrderRefused
from fencerow.core.model.control import check_delay
from fencerow.core.model.seconds import Seconds
from fencerow.core.worker.ordered import ServedChange, not_registered
from fencerow.core.worker.worker import LoopWorker
from fencerow.db.loop_thread import LoopThread
from fencerow.db.service import loop_here

T = TypeVar("T")
LOOK_S = 0.5  # how often it is seen that a worker has ended, which carries out nothing more


@answer
class Worker(LoopWorker):
    """Claims jobs of the registered names from its queues and runs them until it is stopped.

    `queues` maps a queue to slots of its own, or lists queues that use `slots` together. Use it as an async
    context manager inside an application, or `run()` it in a process of its own. In plain code write `with`, which runs
    it in a thread of its own, or `run_blocking()`.

    With `ends_process`, the worker ends its process if a handler blocks the event loop beyond its time limit:
    nothing less can end such a handler. See docs/guide.md.
    """

    def run_blocking(self, *, until_idle: bool = False) -> None:
        """`run` for plain code: it returns when the worker has ended. `request_stop` may come from another thread.

        Raises:
            InvalidInput: called inside a running event loop. All that `run` raises.
        """
        refuse_in_a_loop("run_blocking()", "await worker.run()")
        asyncio.run(self.run(until_idle=until_idle))

    def change_blocking(self, **change: Unpack[ServedChange]) -> int:
        """`change` for plain code, where the worker runs in another thread.

        Raises:
            OrderRefused: as of `change`; or the worker ended meanwhile. InvalidInput: called inside a running event
                loop, or the change does not fit.
        """
        refuse_in_a_loop("change_blocking()", "await worker.change(...)")
        if self._loop is None or self.holder is None:
            raise not_registered(self.name)
        return self._answered(self._loop, self.change(**change))

    def _answered(self, loop: asyncio.AbstractEventLoop, asked: Coroutine[Any, Any, T]) -> T:
        """What comes of this in the worker's loop. What it raises is raised here."""
        try:
            coming = asyncio.run_coroutine_threadsafe(asked, loop)
        except RuntimeError:  # closed
            asked.close()
            raise self._over() from None
        while not wait([coming], LOOK_S).done:
            if self._ended.is_set():
                coming.cancel()
                raise self._over()
        try:
            return coming.result()
        except CancelledError:
            raise self._over() from None

    def _over(self) -> OrderRefused:
        return OrderRefused(
            f"worker {self.name} has ended", "it ended before it could change", "start another one"
        )

    def wait_stopped_blocking(self, timeout_s: Seconds | None = None) -> bool:
        """`wait_stopped` for plain code: whether the worker has ended within so many seconds.

        Raises:
            InvalidInput: called inside a running event loop.
        """
        refuse_in_a_loop("wait_stopped_blocking()", "await worker.wait_stopped()")
        return self._ended.wait(None if timeout_s is None else check_delay(timeout_s, "timeout_s", zero=True))

    def __enter__(self) -> Self:
        refuse_in_a_loop("with app.worker()", "async with app.worker()")
        self._beside = LoopThread(self, partial(self.request_stop, now=True), self.name)
        self._beside.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._beside.leave(now=error is not None)


def refuse_in_a_loop(name: str, instead: str) -> None:
    """Plain code alone may block.

    Raises:
        InvalidInput: an event loop runs in this thread, which the call would stop.
    """
    if loop_here() is not None:
        raise InvalidInput(
            f"{name} was used inside a running event loop",
            "it would block the loop, and with it everything that runs there",
            f"write `{instead}`",
        )
