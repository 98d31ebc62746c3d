"""An engine whose chosen operations fail: before they happen, or after, when the reply is lost."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from fencerow.db.begun import Over
from fencerow.db.run import Operation
from fencerow.errors import OutcomeUnknown, Unavailable
from tests.kit.jobs import AnyEngine

T = TypeVar("T")


class Faulty:
    """Everything of the engine beneath, but for the faults that were ordered."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine
        self._lost: dict[str, int] = {}
        self._broken: dict[str, BaseException] = {}
        self._keeper: Faulty | None = None
        self.commit_reply_lost = 0
        self.seen: list[str] = []
        self.struck: list[str] = []
        self.begun: list[str] = []  # sent at once, without a task
        self._late: list[asyncio.Task[None]] = []
        self.held_back: asyncio.Event | None = None  # answers to what is begun wait for it

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def lose_reply(self, operation: str, times: int = 1) -> None:
        """It happens, and nobody is told."""
        self._lost[operation] = times

    def refuse(self, operation: str, error: BaseException | None = None) -> None:
        """It does not happen, until `allow`."""
        self._broken[operation] = error or Unavailable("no connection", "a test wants it so", "")

    def allow(self, operation: str) -> None:
        self._broken.pop(operation, None)

    def keeper(self, *, patience_s: float = math.inf) -> Any:
        made = Faulty(self._engine.keeper(patience_s=patience_s))
        made._lost, made._broken, made.seen = self._lost, self._broken, self.seen
        return made

    def run(self, operation: Operation[T]) -> T:
        return self._after(operation, self._before(operation)._engine.run(operation))

    async def arun(self, operation: Operation[T]) -> T:
        return self._after(operation, await self._before(operation)._engine.arun(operation))

    def begin(self, operation: Operation[T], over: Over) -> bool:
        """As `arun`, sent at once."""
        if operation.name in self._broken:
            return False  # `arun` meets it

        def answered(result: Any, error: BaseException | None) -> None:
            try:
                result = result if error is not None else self._after(operation, result)
            except OutcomeUnknown as lost:
                result, error = None, lost
            if self.held_back is None:
                over(result, error)
            else:
                self._late.append(
                    asyncio.create_task(self._told(self.held_back, partial(over, result, error)))
                )

        begun = self._engine.begin(operation, answered)
        if begun:
            self.seen.append(operation.name)
            self.begun.append(operation.name)
        return begun

    async def _told(self, go: asyncio.Event, over: Callable[[], object]) -> None:
        await go.wait()
        over()

    @asynccontextmanager
    async def asession(self, *, idle_s: float | None = None) -> AsyncIterator[Any]:
        async with self._engine.asession(idle_s=idle_s) as session:
            yield session
        if self.commit_reply_lost:
            self.commit_reply_lost -= 1
            self.struck.append("commit")
            raise OutcomeUnknown("the reply to COMMIT was lost")

    def _before(self, operation: Operation[Any]) -> Faulty:
        self.seen.append(operation.name)
        if operation.name in self._broken:
            self.struck.append(operation.name)
            raise self._broken[operation.name]
        return self

    def _after(self, operation: Operation[Any], result: T) -> T:
        if self._lost.get(operation.name, 0) > 0:
            self._lost[operation.name] -= 1
            self.struck.append(operation.name)
            raise OutcomeUnknown(f"the reply to {operation.name} was lost")
        return result
