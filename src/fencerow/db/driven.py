"""Coroutines that are driven by hand: whoever awaits one must know when it waits, or of each of its steps."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from types import coroutine as awaitable
from typing import Any, TypeVar

T = TypeVar("T")


@awaitable
def noticed(coroutine: Coroutine[Any, Any, T], on_wait: Callable[[], None]) -> Generator[Any, Any, T]:
    """The coroutine as if it were awaited plainly; `on_wait` is called when it waits for the first time."""
    try:
        waiting = coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    on_wait()
    rest: T = yield from rest_of(waiting, coroutine.send, coroutine.throw, coroutine.close)
    return rest


def rest_of(
    waiting: Any,
    send: Callable[[Any], Any],
    throw: Callable[[BaseException], Any],
    close: Callable[[], object],
) -> Generator[Any, Any, Any]:
    """What is left of a coroutine that waits: hand its waits out, and the answers in."""
    try:
        while True:
            try:
                answer = yield waiting
            except GeneratorExit:
                close()
                raise
            except BaseException as error:
                waiting = None  # it may be what has the error, in whose traceback this frame is
                waiting = throw(error)
            else:
                waiting = send(answer)
    except StopIteration as done:
        return done.value
