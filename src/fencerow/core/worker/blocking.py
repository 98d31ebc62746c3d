"""A worker for plain code: `with app.worker():` runs it in a thread of its own, with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, wait
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from fencerow.core.answering import answer
from fencerow.core.db.service import soon
from fencerow.core.errors import InvalidInput, OrderRefused
from fencerow.core.model.control import check_delay
from fencerow.core.model.seconds import Seconds
from fencerow.core.worker.ordered import ServedChange, not_registered

T = TypeVar("T")
LOOK_S = 0.5  # how often it is seen that a worker has ended, which carries out nothing more


def refuse_in_a_loop(name: str, instead: str) -> None:
    """Plain code alone may block.

    Raises:
        InvalidInput: an event loop runs in this thread, which the call would stop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidInput(
        f"{name} was used inside a running event loop",
        "it would block the loop, and with it everything that runs there",
        f"write `{instead}`",
    )


def is_in(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this thread is in that loop just now, or the loop does not run."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return not loop.is_running()


class WorkerThread:
    """A worker that runs in a thread beside the caller's, between `enter` and `leave`.

    `block` is the worker as an async context manager, `hurry` asks it to stop at once.
    """

    def __init__(
        self, block: AbstractAsyncContextManager[object], hurry: Callable[[], None], name: str
    ) -> None:
        self._block = block
        self._hurry = hurry
        self._thread = threading.Thread(target=self._main, name=f"fencerow-{name}", daemon=True)
        self._up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: asyncio.Event | None = None
        self._error: BaseException | None = None

    def enter(self) -> None:
        """Start the worker, and return once it is registered and takes jobs. What it raises is raised here."""
        self._thread.start()
        self._up.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def leave(self, *, now: bool) -> None:
        """Stop it, and return when all outcomes are written. With `now` running handlers are cancelled at once.

        An error that ended the worker is raised here, unless the block has one of its own.
        """
        if self._loop is not None and self._asked is not None:
            if now:
                soon(self._loop, self._hurry)
            soon(self._loop, self._asked.set)
        self._thread.join()
        if self._error is not None and not now:
            raise self._error

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._up.set()

    async def _serve(self) -> None:
        self._loop, self._asked = asyncio.get_running_loop(), asyncio.Event()
        async with self._block:
            self._up.set()
            await self._asked.wait()


@answer
class PlainUse(ABC):
    """What plain code uses of a worker, where it runs in a thread of its own or until it has ended."""

    name: str
    _loop: asyncio.AbstractEventLoop | None
    _ended: threading.Event

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @abstractmethod
    async def run(self, *, until_idle: bool = False) -> None: ...

    @abstractmethod
    async def change(self, **change: Unpack[ServedChange]) -> int: ...

    @abstractmethod
    def request_stop(self, *, now: bool = False) -> None: ...

    @property
    @abstractmethod
    def holder(self) -> str | None: ...

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
            answer = asyncio.run_coroutine_threadsafe(asked, loop)
        except RuntimeError:  # closed
            asked.close()
            raise self._over() from None
        while not wait([answer], LOOK_S).done:
            if self._ended.is_set():
                answer.cancel()
                raise self._over()
        try:
            return answer.result()
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
        self._beside = WorkerThread(self, partial(self.request_stop, now=True), self.name)
        self._beside.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._beside.leave(now=error is not None)
