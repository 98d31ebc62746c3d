"""Requests that are answered without a task: each answer calls who waits for it, who sends there what comes next.

A task costs two turns of the event loop, one until it begins and one until who waits for it goes on. What no cancel can
reach needs none, as long as everything it asks for can be sent at once. Where something cannot, a task goes on with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

from fencerow.db.run import Pause

T = TypeVar("T")
Q = TypeVar("Q")

# Called once with a result, or with the error in its place.
Over = Callable[[Any, BaseException | None], None]


class TasklessRun(Generic[Q, T]):
    """A generator of requests, of which the first was asked.

    `begin` asks one, so that `answered` is called later; false where it cannot. `beside` goes on with the rest in a
    task, and calls `over` as well.
    """

    __slots__ = ("_begin", "_beside", "_over", "_requests")

    def __init__(
        self,
        requests: Generator[Q | Pause, Any, T],
        over: Over,
        *,
        begin: Callable[[Q | Pause, Over], bool],
        beside: Callable[[Generator[Q | Pause, Any, T], Over], object],
    ) -> None:
        self._requests = requests
        self._over = over
        self._begin = begin
        self._beside = beside

    def answered(self, reply: Any, error: BaseException | None) -> None:
        """Go on with the answer to what was asked last."""
        requests = self._requests
        try:
            request = requests.send(reply) if error is None else requests.throw(error)
        except StopIteration as done:
            self._over(done.value, None)
        except BaseException as raised:
            self._over(None, raised)
        else:
            if not self._begin(request, self.answered):
                self._beside(resumed(request, requests), self._over)


def resumed(request: Q, requests: Generator[Q, Any, T]) -> Generator[Q, Any, T]:
    """The rest of a generator of requests, of which this one is not answered yet."""
    try:
        while True:
            try:
                reply = yield request
            except BaseException as error:
                request = requests.throw(error)
            else:
                request = requests.send(reply)
    except StopIteration as done:
        result: T = done.value
        return result


async def told(running: Awaitable[Any], over: Over) -> None:
    """Wait for it, and tell how it ended."""
    try:
        result = await running
    except BaseException as error:
        over(None, error)
        if not isinstance(error, Exception):
            raise
    else:
        over(result, None)


def settle(waited_for: asyncio.Future[T], result: T, error: BaseException | None) -> None:
    """Tell who waits for it, if anybody still does."""
    if waited_for.done():
        return
    if error is None:
        waited_for.set_result(result)
    elif isinstance(error, asyncio.CancelledError):
        waited_for.cancel()
    else:
        waited_for.set_exception(error)
