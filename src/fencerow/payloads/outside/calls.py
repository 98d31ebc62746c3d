"""Calls of a store outside, which may hang: on threads of their own, a few at once, and nobody waits for one for ever.

A call that takes longer than it may is left behind. Its thread is a daemon, so it keeps neither the process nor anybody
else from ending; until it comes back it is one of the few. Once all of them hang the next call is refused at once, so
that a store which hangs does not hold a worker's slots.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeVar

from fencerow.core.client.base import waited
from fencerow.core.errors import StoreUnavailable
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.strikes import SHELTER, sheltered
from fencerow.db.threads import UNCARRIED, NoThread

T = TypeVar("T")

AT_ONCE: Final = 16


class StoreCalls:
    """Makes calls for all threads and event loops of a process. Nothing need be closed: a thread ends when it is idle.

    `within_s`: how long a caller waits, for a free thread and for the answer.
    """

    def __init__(self, within_s: float, *, at_once: int = AT_ONCE) -> None:
        self._within_s = within_s
        self._at_once = at_once
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._busy: dict[object, float] = {}  # threads, and since when each makes its call (monotonic)

    def run(self, call: Callable[[], T]) -> T:
        """What the call returns, or raises. A handler that must end meanwhile goes, and leaves it behind.

        Raises:
            StoreUnavailable: it takes too long, and may still be made. BlockingCall: an event loop would stand still.
        """
        refuse_in_loop()
        future: Future[T] | None = None
        try:
            with SHELTER:
                future = self.start(call)
            return waited(future, self._within_s)
        except BaseException as error:
            # The call may raise a TimeoutError of its own.
            if future is not None and _left_behind(future) and type(error) is TimeoutError:
                raise self._too_long() from None
            raise

    async def arun(self, call: Callable[[], T]) -> T:
        """`run` for async code. A caller that is cancelled leaves it behind."""
        answer = asyncio.wrap_future(self.start(call))
        try:
            await asyncio.wait({answer}, timeout=self._within_s)
            if not answer.done():
                raise self._too_long()
            return answer.result()
        finally:
            answer.cancel()  # one that waits for a thread is not made any more

    @sheltered
    def start(self, call: Callable[[], T]) -> Future[T]:
        """Have it made once a thread is free.

        Raises:
            StoreUnavailable: every thread hangs. NoThread: the system refuses one. It is not made.
        """
        future: Future[T] = Future()
        with self._lock:
            if len(self._busy) == self._at_once and self._all_hang():
                raise self._too_long()
            self._waiting.append((future, partial(copy_context().run, call)))
            if len(self._busy) < self._at_once:
                self._serve_one_more(future)
        return future

    def _all_hang(self) -> bool:
        return time.monotonic() - max(self._busy.values()) > self._within_s

    def _serve_one_more(self, future: Future[Any]) -> None:
        me = object()
        try:
            threading.Thread(target=self._serve, args=(me,), name="fencerow-store", daemon=True).start()
        except RuntimeError as error:
            future.cancel()
            raise NoThread(f"no thread for a call of the store outside: {error}") from error
        self._busy[me] = time.monotonic()

    def _serve(self, me: object) -> None:
        while (taken := self._next(me)) is not None:
            future, call = taken
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:
                odd = isinstance(error, UNCARRIED)
                future.set_exception(RuntimeError(f"the store raised {error!r}") if odd else error)
            else:
                future.set_result(result)

    def _next(self, me: object) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if not self._waiting:
                del self._busy[me]
                return None
            self._busy[me] = time.monotonic()
            return self._waiting.popleft()

    def _too_long(self) -> StoreUnavailable:
        return StoreUnavailable(
            "the store of large payloads does not answer",
            f"a call of it takes longer than {self._within_s:g} s (outside_timeout_s), and may still be made",
            "look at the store, and at the way to it; what was not stored can be repeated",
        )


@sheltered
def _left_behind(future: Future[Any]) -> bool:
    """Nobody waits for it any more; whether it was not over."""
    if future.done():
        return False
    future.cancel()
    return True
