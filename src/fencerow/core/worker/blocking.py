"""A worker in a thread of its own, with an event loop of its own; and what may not block a loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fencerow.core.errors import InvalidInput
from fencerow.db.service import soon


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
