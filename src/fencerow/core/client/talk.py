"""A talk: several operations with decisions and pauses between them, written once for sync and async.

One operation is one transaction. What needs more than one (ask again after a lost answer, find the
job behind a key, then cancel it) is a generator of operations, run by one of two short loops.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from fencerow.core.db.statement import Operation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pause:
    """Let so many seconds pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Say:
    """Send these wake-ups; what they tell is committed."""

    messages: list[str]


Request = Operation[Any] | Pause | Say
Talk = Generator[Request, Any, T]
Wake = Callable[[list[str]], None]


class Runner(Protocol):
    """Whoever runs operations: an engine, or a connection that the caller owns."""

    def run(self, operation: Operation[T]) -> T: ...

    async def arun(self, operation: Operation[T]) -> T: ...


def ask(operation: Operation[T]) -> Talk[T]:
    """Run one operation inside a talk."""
    answer: T = yield operation
    return answer


def converse(talk: Talk[T], runner: Runner, wake: Wake) -> T:
    """Hold a talk, in this thread."""
    try:
        request = next(talk)
        while True:
            try:
                answer = _answer(request, runner, wake)
            except Exception as error:
                request = talk.throw(error)
            else:
                request = talk.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        talk.close()


async def aconverse(talk: Talk[T], runner: Runner, wake: Wake) -> T:
    """Hold a talk, in this event loop."""
    try:
        request = next(talk)
        while True:
            try:
                answer = await _aanswer(request, runner, wake)
            except Exception as error:
                request = talk.throw(error)
            else:
                request = talk.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        talk.close()


def _answer(request: Request, runner: Runner, wake: Wake) -> Any:
    if isinstance(request, Pause):
        return time.sleep(request.seconds)
    if isinstance(request, Say):
        return wake(request.messages)
    return runner.run(request)


async def _aanswer(request: Request, runner: Runner, wake: Wake) -> Any:
    if isinstance(request, Pause):
        return await asyncio.sleep(request.seconds)
    if isinstance(request, Say):
        return wake(request.messages)
    return await runner.arun(request)
