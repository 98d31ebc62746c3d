"""Who waits for a handover hears when one may be there. A hint: it may be lost, and who waits looks by himself too."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from types import TracebackType

from fencerow.core.model.wakeup import HandoverFree, JobsEnded, decode
from fencerow.db.engine import Engine
from fencerow.db.service import soon
from fencerow.db.strikes import SHELTER
from fencerow.db.waits import set_within

SLICE_S = 0.5  # a plain handler that must end is kept from it no longer


def _is_for(message: str | None) -> bool:
    """Whether it may mean a handover. None: some may have been missed."""
    return message is None or isinstance(decode(message), JobsEnded | HandoverFree)


class Bell:
    """For a thread that waits. It hears from the moment when the block begins; a handler enters it by a `Doorway`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rung = threading.Event()
        self._stop: Callable[[], None] | None = None

    def __enter__(self) -> Bell:
        self._stop = self._engine.listen(self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop is not None:
            self._stop()

    def wait(self, timeout_s: float) -> None:
        """Until it has rung since the last wait, or for so long."""
        until = time.monotonic() + timeout_s
        is_over = False
        while not is_over:
            with (
                SHELTER
            ):  # whoever rings must find it unlocked, and on SQLite that is any thread that submits
                rung = self._rung.wait(max(0.0, min(SLICE_S, until - time.monotonic())))
                is_over = rung or time.monotonic() >= until
                if is_over:
                    self._rung.clear()

    def _heard(self, message: str | None) -> None:
        if _is_for(message):
            self._rung.set()


class AsyncBell:
    """For a task that waits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rung = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[], None] | None = None

    async def __aenter__(self) -> AsyncBell:
        self._loop = asyncio.get_running_loop()
        self._stop = await asyncio.to_thread(self._engine.listen, self._heard)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop is not None:
            await asyncio.to_thread(self._stop)

    async def wait(self, timeout_s: float) -> None:
        """Until it has rung since the last wait, or for so long."""
        await set_within(self._rung, max(0.0, timeout_s))
        self._rung.clear()

    def _heard(self, message: str | None) -> None:
        if _is_for(message) and self._loop is not None:
            soon(self._loop, lambda: self._rung.set())
