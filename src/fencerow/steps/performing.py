"""How a running job performs what its steps ask for: operations, calls and pauses, in a thread or on the loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from fencerow.core.worker.context import Job
from fencerow.db.run import Operation
from fencerow.db.strikes import Doorway
from fencerow.db.text import shown

if TYPE_CHECKING:
    from fencerow.steps.calls import Together
    from fencerow.steps.errors import StepNotPossible
    from fencerow.steps.history import History
    from fencerow.steps.run import Run


class Performs(Job):
    """A running job that performs scripts: generators that yield what is to be done, and are sent what came of it."""

    __slots__ = ()

    def _run_of(self, what: str) -> Run:
        """What this attempt has of its steps.

        Raises:
            StepNotPossible: a transaction of its success is open, and may undo what would be remembered.
        """
        if self.opened_transaction is not None and self.opened_transaction.is_open:
            raise _not_possible(
                f"{what} is asked for while job.transaction() is open",
                "it commits with the job's success alone, and a step is remembered before that",
                "do the steps first, and the last effects in job.transaction()",
            )
        if self.kept is None:
            self.kept = {}
        if "steps" not in self.kept:
            from fencerow.steps.run import Run  # who remembers nothing never loads it
            from fencerow.steps.settings import StepSettings

            self.kept["steps"] = Run(self, self._attempt, StepSettings.of(self._config))
        found: Run = self.kept["steps"]
        return found

    def _check_kind(self, name: str, fn: Callable[..., Any]) -> None:
        if not callable(fn):
            raise _not_possible(
                f"the step {shown(name)} is {shown(fn)}",
                "a function is expected, and its arguments after it",
                "",
            )
        is_async = _is_async(getattr(fn, "func", fn))
        if is_async and not self._on_loop():
            raise _not_possible(
                f"the step {shown(name)} is an async function",
                "a plain handler cannot await it",
                "make the handler async",
            )
        if not is_async and self._on_loop():
            raise _not_possible(
                f"the step {shown(name)} is a plain function",
                "in an async handler it would keep the event loop from all others",
                "make it async, or write job.step(name, asyncio.to_thread, fn, *args)",
            )

    def _said(self, script: Callable[[History], Generator[Any, Any, Any]]) -> Any:
        if self._on_loop():
            return self._aperform(script)
        return self._perform(script)

    def _perform(self, script: Callable[[History], Generator[Any, Any, Any]]) -> Any:
        run: Run = (self.kept or {})["steps"]
        doing = script(run.history(self._engine.run))
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                wanted = doing.send(answer) if error is None else doing.throw(error)
            except StopIteration as done:
                return done.value
            answer, error = None, None
            try:
                answer = self._do(wanted)
            except Exception as raised:
                error = raised

    def _do(self, wanted: Any) -> Any:
        if isinstance(wanted, Operation):
            return self._engine.run(wanted)
        if isinstance(wanted, float):
            self.wait_cancelled(wanted)
            self.raise_if_cancelled()
            return None
        from fencerow.steps.calls import Together

        if isinstance(wanted, Together):
            return self._together(wanted)
        return wanted.function(*wanted.args)

    def _together(self, wanted: Together) -> None:
        run: Run = (self.kept or {})["steps"]
        with Doorway(self._engine.session()) as session:
            run.refuse_lost(held=session.run(wanted.hold) is not None)
            value = wanted.function(session.connection, *wanted.args)
            run.refuse_lost(held=session.run(wanted.remember(value)))

    async def _atogether(self, wanted: Together) -> None:
        run: Run = (self.kept or {})["steps"]
        async with self._engine.asession() as session:
            run.refuse_lost(held=await session.arun(wanted.hold) is not None)
            value = await wanted.function(session.connection, *wanted.args)
            run.refuse_lost(held=await session.arun(wanted.remember(value)))

    async def _aperform(self, script: Callable[[History], Generator[Any, Any, Any]]) -> Any:
        run: Run = (self.kept or {})["steps"]
        doing = script(await run.ahistory(self._engine.arun))
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                wanted = doing.send(answer) if error is None else doing.throw(error)
            except StopIteration as done:
                return done.value
            answer, error = None, None
            try:
                answer = await self._ado(wanted)
            except Exception as raised:
                error = raised

    async def _ado(self, wanted: Any) -> Any:
        if isinstance(wanted, Operation):
            return await self._engine.arun(wanted)
        if isinstance(wanted, float):
            await asyncio.sleep(wanted)
            return None
        from fencerow.steps.calls import Together

        if isinstance(wanted, Together):
            return await self._atogether(wanted)
        return await wanted.function(*wanted.args)


def _not_possible(found: str, expected: str, advice: str) -> StepNotPossible:
    from fencerow.steps.errors import StepNotPossible  # who remembers nothing never loads it

    return StepNotPossible(found, expected, advice)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the method itself is wanted
    )
