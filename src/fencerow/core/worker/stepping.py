"""Awaits a coroutine step by step: in a context of its own, or to notice that it waits.

A slot is one long-lived task that runs job after job. Context variables that a handler sets must not
reach the next job; a task per job would do, at several times the cost of this.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import coroutine as awaitable
from typing import Any, TypeVar

T = TypeVar("T")


@awaitable
def in_context(
    context: Context,
    coroutine: Coroutine[Any, Any, T],
    step: Callable[..., Any],
    on_wait: Callable[[], None] | None = None,
) -> Generator[Any, Any, T]:
    """Every step of the coroutine runs in the given context, its waits in the awaiting task.

    Each step is taken by `step`, which calls its first argument with the others. `on_wait` is called when it waits
    for the first time; many never do.
    """
    try:
        waiting = step(context.run, coroutine.send, None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    if on_wait is not None:
        on_wait()
    rest: T = yield from _rest(
        waiting,
        lambda answer: step(context.run, coroutine.send, answer),
        lambda error: step(context.run, coroutine.throw, error),
        lambda: step(context.run, coroutine.close),
    )
    return rest


@awaitable
def noticed(coroutine: Coroutine[Any, Any, T], on_wait: Callable[[], None]) -> Generator[Any, Any, T]:
    """The coroutine as if it were awaited plainly; `on_wait` is called when it waits for the first time."""
    try:
        waiting = coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    on_wait()
    rest: T = yield from _rest(waiting, coroutine.send, coroutine.throw, coroutine.close)
    return rest


def _rest(
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
                waiting = throw(error)
            else:
                waiting = send(answer)
    except StopIteration as done:
        return done.value
