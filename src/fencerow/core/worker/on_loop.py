"""What the event loop runs just now."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from types import coroutine as awaitable
from typing import Any, TypeVar

from fencerow.core.worker.attempt import Attempt
from fencerow.db.driven import rest_of

T = TypeVar("T")


class OnLoop:
    """What the event loop runs just now: told at each step of a call, read by the thread that watches the loop."""

    __slots__ = ("attempts", "since")

    def __init__(self) -> None:
        # Those that the call works for, while a step of it is under way.
        self.attempts: tuple[Attempt, ...] = ()
        self.since = 0.0  # monotonic; when the step began

    @awaitable
    def run(self, attempts: tuple[Attempt, ...], coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await a coroutine that works for these attempts: every step of it in a context of its own.

        A slot is one long-lived task that runs job after job. Context variables that a handler sets must not reach
        the next job; a task per job would do, at several times the cost of this. Its waits are the awaiting task's.
        From the first one on the attempts' limits are watched: before, nothing could end them, and many never wait.
        """
        inside = copy_context().run
        deadline = attempts[0].deadline
        for each in attempts[1:]:
            deadline = min(deadline, each.deadline)
        try:
            waiting = self._step(attempts, deadline, inside, coroutine.send, None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        for each in attempts:
            each.limit_time()
        step = partial(self._step, attempts, deadline, inside)
        rest = rest_of(
            waiting,
            partial(step, coroutine.send),
            partial(step, coroutine.throw),
            partial(step, coroutine.close),
        )
        del waiting  # it may be what has the error, in whose traceback this frame is
        answer: T = yield from rest
        return answer

    def _step(
        self, attempts: tuple[Attempt, ...], deadline: float, do: Callable[..., Any], *given: Any
    ) -> Any:
        """Take one step of a call: up to where it waits, or to its end. `deadline` is the first of its attempts'.

        Attempts whose handler kept the loop itself beyond their deadline `overran`: nothing could end them in time.
        """
        self.attempts, self.since = attempts, time.monotonic()
        try:
            return do(*given)
        finally:
            del given  # it may be an error, in whose traceback this frame is
            self.attempts = ()
            if self.since <= deadline < time.monotonic():
                for attempt in attempts:
                    attempt.overran = attempt.deadline < time.monotonic()
