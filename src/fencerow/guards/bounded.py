"""Asking a database that may not answer, for a bounded time: whoever may not go on without it must learn so soon."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from typing import Generic, TypeVar

from fencerow.core.errors import FencerowError, Unavailable
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.left_tasks import done_by, leave
from fencerow.db.strikes import SHELTER

log = logging.getLogger("fencerow.primitives")

T = TypeVar("T")


class BoundedQuestion(Generic[T]):
    """One question that is asked elsewhere; `undo` is for an answer that nobody waits for any more."""

    def __init__(self, undo: Callable[[T], object]) -> None:
        self._undo = undo
        self._answer: Future[T] = Future()
        self._lock = threading.Lock()
        self._given_up = False

    def ask(self, question: Callable[[], T]) -> None:
        """Ask it, in whichever thread this is."""
        try:
            answer = question()
        except BaseException as error:
            self._answer.set_exception(error)
            return
        with self._lock:
            if not self._given_up:
                self._answer.set_result(answer)
                return
        self.take_back(answer)

    def take_back(self, answer: T) -> None:
        """Nobody waits for this answer any more."""
        try:
            self._undo(answer)
        except FencerowError as error:
            log.warning("what came too late could not be taken back: %s", error)

    def within(self, timeout_s: float, what: str) -> T:
        """The answer.

        Raises:
            Unavailable: it did not come in time.
        """
        try:
            return self._answer.result(timeout_s)
        except Late:
            with self._lock:
                if not self._answer.done():
                    self._given_up = True
                    raise too_late(timeout_s, what) from None
        return self._answer.result()


def within(timeout_s: float, what: str, question: Callable[[], T], undo: Callable[[T], object]) -> T:
    """Ask a question in a thread of its own and wait at most so long for the answer.

    Raises:
        Unavailable: there is none; one that comes later is undone.
        BlockingCall: inside a running event loop.
    """
    refuse_in_loop()
    asked, came = BoundedQuestion(undo), list[T]()
    try:
        with SHELTER:
            threading.Thread(target=asked.ask, args=(question,), name="fencerow-bounded", daemon=True).start()
            came.append(asked.within(timeout_s, what))
    except BaseException:
        if came:  # and the caller was struck meanwhile
            with SHELTER:
                asked.take_back(came[0])
        raise
    return came[0]


async def awithin(
    timeout_s: float, what: str, question: Awaitable[T], undo: Callable[[T], Awaitable[object]]
) -> T:
    """`within` for async code. A caller who is cancelled while waiting has the answer undone too."""
    asking, in_time = asyncio.ensure_future(question), None
    try:
        in_time = await done_by(asyncio.get_running_loop().time() + timeout_s, asking, goes_on=True)
    finally:
        if in_time is None:
            leave(asyncio.ensure_future(_undone(asking, undo)))
    if in_time is None:
        raise too_late(timeout_s, what)
    return in_time.result()


async def _undone(asking: asyncio.Future[T], undo: Callable[[T], Awaitable[object]]) -> None:
    try:
        await undo(await asking)
    except FencerowError as error:
        log.warning("what came too late could not be taken back: %s", error)
    except Exception:
        log.exception("what came too late could not be taken back")


def too_late(timeout_s: float, what: str) -> Unavailable:
    """The database did not answer in time."""
    return Unavailable(
        f"the database did not answer within {timeout_s:g} s whether {what}",
        "it is away, or others hold locks on it",
        "do not go on without the answer; ask again later",
    )
