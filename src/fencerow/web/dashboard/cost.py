"""What a view may cost the database: its statements and rows are counted, and one that would cost more is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from fencerow.client import Client
from fencerow.core.errors import Busy
from fencerow.db.run import Operation, Request, Rows, Runner, Statement, Steps, WakeUp
from fencerow.web.dashboard.answers import RoundAnswers
from fencerow.web.dashboard.source import Chosen, Source

T = TypeVar("T")

STATEMENTS_MAX = 6
ROWS_MAX = 2_000
# Of a view that reads each queue: three rows of its live jobs and one of its pause, of 10,000 queues.
ROWS_OF_QUEUES_MAX = 40_000
STATEMENT_S = 2.0  # a statement that takes longer is cancelled: no answer is better than a late one


@dataclass(slots=True)
class Cost:
    """What one view has cost until now, and its ceiling. What others of the round have read is free."""

    statements_max: int = STATEMENTS_MAX
    rows_max: int = ROWS_MAX
    statements: int = 0
    rows: int = 0
    told: str = ""  # from where the view reads, where that is to be said
    answers: RoundAnswers | None = None

    def counting(self, operation: Operation[T]) -> Operation[T]:
        """The operation, counted, and given up by a server that takes too long."""
        patience_s = min(STATEMENT_S, operation.patience_s or STATEMENT_S)
        return msgspec.structs.replace(
            operation, start=lambda: self._steps(operation.start()), patience_s=patience_s
        )

    def _steps(self, steps: Steps[T]) -> Steps[T]:
        """The same statements; what is raised at one is raised where it was asked for."""
        try:
            statement = next(steps)
            while True:
                try:
                    rows = yield self._asked(statement)
                except BaseException as error:
                    statement = steps.throw(error)
                else:
                    statement = steps.send(self._came(rows))
        except StopIteration as done:
            value: T = done.value
            return value
        finally:
            steps.close()

    def _came(self, rows: Rows) -> Rows:
        self.rows += len(rows)
        if self.rows > self.rows_max:
            raise _too_dear(f"{self.rows_max} rows")
        return rows

    def _asked(self, statement: Statement) -> Statement:
        self.statements += 1
        if self.statements > self.statements_max:
            raise _too_dear(f"{self.statements_max} statements")
        return statement


class LookingClient(Client):
    """The verbs that look, for one view. Verbs that change something are refused: they would wake somebody."""

    def __init__(self, common: Client, cost: Cost, source: Source | None = None) -> None:
        super().__init__(common.engine, telemetry=common.telemetry, ready=common.make_ready)
        self.encode_arguments, self.packing = common.encode_arguments, common.packing
        self._cost = cost
        self._source = source
        self._chosen: Chosen | None = None

    def _aanswer(self, runner: Runner, request: Request) -> Awaitable[Any]:
        assert not isinstance(request, WakeUp), "a view looks, and changes nothing"
        if self._source is None:
            return self._answered(request, lambda each: super(LookingClient, self)._aanswer(runner, each))
        return self._from(self._source, request)

    async def _from(self, source: Source, request: Operation[Any]) -> Any:
        """All statements of a view read from the same place."""
        if self._chosen is None:
            self._chosen = await source.chosen()
            self._cost.told = self._chosen.told
        return await self._answered(request, self._chosen.engine.arun)

    async def _answered(
        self, request: Operation[Any], ask: Callable[[Operation[Any]], Awaitable[Any]]
    ) -> Any:
        if self._cost.answers is None:
            return await ask(self._cost.counting(request))
        return await self._cost.answers.answer(request, lambda: ask(self._cost.counting(request)))


def _too_dear(ceiling: str) -> Busy:
    return Busy(
        f"this view would cost the database more than {ceiling}",
        "that is its ceiling, so that looking never slows the jobs",
        "narrow the search, or look with the command",
    )
