"""Runs a coroutine inside a context of its own without a task of its own.

A slot is one long-lived task that runs job after job. Context variables that a handler sets must not
reach the next job; a task per job would do, at several times the cost of this.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class InContext(Generic[T]):
    """Awaitable: every step of the coroutine runs in the given context, its waits in the awaiting task.

    `on_wait` is called when it waits for the first time; many never do.
    """

    def __init__(
        self,
        context: Context,
        coroutine: Coroutine[Any, Any, T],
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        self._context = context
        self._coroutine = coroutine
        self._on_wait = on_wait

    def __await__(self) -> Generator[Any, Any, T]:
        context, coroutine = self._context, self._coroutine
        try:
            waiting = context.run(coroutine.send, None)
            if self._on_wait is not None:
                self._on_wait()
            while True:
                try:
                    answer = yield waiting
                except GeneratorExit:
                    context.run(coroutine.close)
                    raise
                except BaseException as error:
                    waiting = context.run(coroutine.throw, error)
                else:
                    waiting = context.run(coroutine.send, answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
