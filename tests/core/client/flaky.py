"""An engine around a real one that loses replies when a test says so, and remembers what was run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fencerow.db.engine import Engine
from fencerow.db.run import Operation
from fencerow.errors import OutcomeUnknown, StorageFull, Unavailable
from tests.kit.pace import PATIENCE_S

T = TypeVar("T")


class Flaky:
    """Delegates to a real engine. `plan` says what happens to the next operations that write jobs.

    "lost after": it is committed, then the reply is lost. "lost before": the connection breaks at COMMIT and
    nothing was stored. "down": there is no connection. When the plan is empty all goes well.
    """

    def __init__(self, engine: Engine, *plan: str) -> None:
        self.real = engine
        self.plan = list(plan)
        self.ran: list[str] = []
        self.down = False
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.woken: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def wake(self, messages: list[str]) -> None:
        self.woken += messages
        self.real.wake(messages)

    def run(self, operation: Operation[T]) -> T:
        return self._broken(operation) or self._done(operation, self.real.run(operation))

    def begin(self, _operation: object, _over: object) -> bool:
        return False

    async def arun(self, operation: Operation[T]) -> T:
        self.entered.set()
        if self.gate is not None and operation.writes:
            await self.gate.wait()
        return self._broken(operation) or self._done(operation, await self.real.arun(operation))

    def _broken(self, operation: Operation[T]) -> T | None:
        self.ran.append(operation.name)
        if self.down or (self.plan and self.plan[0] == "down" and operation.writes):
            self.plan = self.plan[1:]
            raise Unavailable("no connection", "", "repeat")
        if self.plan and self.plan[0] == "lost before" and operation.writes:
            self.plan = self.plan[1:]
            raise OutcomeUnknown("the connection broke", "", "ask")
        if self.plan and self.plan[0] == "full" and operation.writes:
            self.plan = self.plan[1:]
            raise StorageFull("the disk is full", "nothing was stored", "make room")
        return None

    def _done(self, operation: Operation[T], answer: T) -> T:
        if self.plan and self.plan[0] == "lost after" and operation.writes:
            self.plan = self.plan[1:]
            raise OutcomeUnknown("the connection broke", "", "ask")
        return answer


def until(done: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait for a condition that another thread brings about."""
    import time

    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.002)
