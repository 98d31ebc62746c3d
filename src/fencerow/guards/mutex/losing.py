"""Cancels the code of an async block when the mutex that it needs is lost."""

from __future__ import annotations

import asyncio

from fencerow.db.service import soon
from fencerow.db.steady import steady
from fencerow.guards.mutex.hold import Hold


class Canceller:
    """Raises CancelledError in the code that entered the block, once, and only while it is inside."""

    def __init__(self, hold: Hold) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._hold = hold
        self._code = task
        self._asked_before = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._inside = True
        self._struck = False
        self._timer = self._loop.call_later(0, self._look)
        hold.on_lost(self._hear)

    def leave(self) -> None:
        """The block is over: strike no more."""
        self._inside = False
        self._timer.cancel()

    def was_ours(self, error: BaseException | None) -> bool:
        """Whether the block ended by our cancel and no other. Takes the cancel back."""
        if not self._struck:
            return False
        others = self._code.uncancel() > self._asked_before
        return isinstance(error, asyncio.CancelledError) and not others

    def _hear(self) -> None:
        """In the renewing thread."""
        soon(self._loop, self._look)  # where the loop is closed, there is no code left to end

    def _look(self) -> None:
        self._timer.cancel()
        if not self._inside or self._struck:
            return
        if self._hold.lost:
            self._struck = True
            self._code.cancel()
        else:
            self._timer = self._loop.call_later(max(0.0, self._hold.deadline - steady()), self._look)
