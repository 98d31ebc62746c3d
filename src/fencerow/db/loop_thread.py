"""What is held open in a thread of its own, with an event loop of its own, for plain code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fencerow.db.service import soon


class LoopThread:
    """A block that is held open in a thread beside the caller's, between `enter` and `leave`.

    `hurry` asks the block, in its loop, to end at once; None: it does so anyway.
    """

    def __init__(
        self, block: AbstractAsyncContextManager[object], hurry: Callable[[], None] | None, name: str
    ) -> None:
        self._block = block
        self._hurry = hurry
        self._thread = threading.Thread(target=self._main, name=f"fencerow-{name}", daemon=True)
        self._up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: asyncio.Event | None = None
        self._error: BaseException | None = None

    def enter(self) -> None:
        """Enter the block, and return once that is done. What it raises is raised here."""
        self._thread.start()
        self._up.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def leave(self, *, now: bool, within_s: float | None = None) -> None:
        """Leave the block, and return when that is done, or after `within_s` seconds. With `now` it is hurried.

        What it raises is raised here, unless it was hurried: then the caller has an error of its own.
        """
        if self._loop is not None and self._asked is not None:
            if now and self._hurry is not None:
                soon(self._loop, self._hurry)
            soon(self._loop, self._asked.set)
        self._thread.join(within_s)
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
