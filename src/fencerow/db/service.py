"""A thread of service: does one turn of its work again and again, for whoever needs it in this process.

Beside it `soon`, the way from any thread to an event loop; `loop_here`, the loop of this one; and `is_in`, whether
that way is needed.

Whatever a turn meets (no descriptor left, no memory, a driver's bug) is logged and waited out, and the next turn comes.
A thread that ended all the same is started again by whoever needs it next: nobody believes in it longer than it lives.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger("fencerow.db")

PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
JOIN_S = 3.0


class Service:
    """Calls `turn` until it says that the thread is not needed. `rest` waits between a failure and the next try.

    `over` is called in the thread when it ends.
    """

    def __init__(
        self,
        name: str,
        turn: Callable[[], bool],
        *,
        rest: Callable[[float], object] = time.sleep,
        over: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._turn = turn
        self._rest = rest
        self._over = over
        self._thread: threading.Thread | None = None
        self._leaves = False
        self._failures = 0  # in a row

    @property
    def is_running(self) -> bool:
        """Whether the thread lives and has not said that it leaves."""
        return self._thread is not None and not self._leaves and self._thread.is_alive()

    def need(self) -> None:
        """Have it running, under the lock under which `leave` is called.

        Raises:
            RuntimeError: the system refuses another thread; the next one who needs it tries again.
        """
        if not self.is_running:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread, self._leaves = thread, False

    def leave(self) -> None:
        """The turn under way is the last: who needs the thread from now on starts another."""
        self._leaves = True

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the thread has ended, if there is one and it is not the caller."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while self._guarded():
                pass
        finally:
            if self._over is not None:
                self._over()

    def _guarded(self) -> bool:
        try:
            goes_on = self._turn()
        except Exception as error:
            pause_s = PAUSES_S[min(self._failures, len(PAUSES_S) - 1)]
            self._failures += 1
            level = logging.WARNING if self._failures in (1, 10, 100) else logging.DEBUG
            log.log(level, "%s failed (try %d) and goes on: %r", self._name, self._failures, error)
            self._rest(pause_s)
            return True
        self._failures = 0
        return goes_on


def soon(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *given: Any) -> None:
    """Run something on the event loop, from any thread; nothing when the loop has gone."""
    try:
        loop.call_soon_threadsafe(call, *given)
    except RuntimeError:
        pass  # it is closed


def loop_here() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, and that a wait would stop; None: there is none."""
    return asyncio._get_running_loop()


def is_in(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this thread is in that loop just now, or the loop does not run."""
    here = loop_here()
    return not loop.is_running() if here is None else here is loop
