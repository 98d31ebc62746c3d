"""A worker that stands still at one point of an operation, its transaction open, and goes on when it is woken."""

from __future__ import annotations

import threading
from typing import Any

from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation, Steps
from fencerow_proof.arena.crash import Point
from tests.kit.pace import PATIENCE_S


class Frozen:
    """On a connection of its own. Once it is over, `outcome` is the result of what it runs, or the error."""

    def __init__(self, arena: Any) -> None:
        self._engine = PostgresEngine(arena.url, arena.queries)
        self._stands = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self.done: list[str] = []  # the statements that were answered
        self.outcome: Any = None

    def freeze(self, operation: Operation[Any], point: Point) -> None:
        """Run it until a point after one of its statements, or to its end if it has not so many."""
        assert point.when in ("after", "committed")
        self._stands, self._woken, self.outcome, self.done = threading.Event(), threading.Event(), None, []
        self._thread = threading.Thread(target=self._run, args=(self._standing(operation, point),))
        self._thread.start()
        assert self._stands.wait(PATIENCE_S)

    def wake(self) -> None:
        """Let it go on to its end."""
        self._woken.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
            assert not self._thread.is_alive()

    def close(self) -> None:
        self.wake()
        self._engine.close()

    def _standing(self, operation: Operation[Any], point: Point) -> Operation[Any]:
        """The same operation, which stands still at the point."""

        def steps() -> Steps[Any]:
            inner, rows = operation.steps(), None
            try:
                while True:
                    statement = inner.send(rows)  # type: ignore[arg-type]
                    rows = yield statement
                    self.done.append(statement.name)
                    if point == Point("after", len(self.done) - 1):
                        self._stands.set()
                        self._woken.wait(2 * PATIENCE_S)
            except StopIteration as stop:
                return stop.value

        return Operation(operation.name, steps, operation.alone, operation.repeatable, operation.writes)

    def _run(self, operation: Operation[Any]) -> None:
        try:
            with self._engine.session() as session:  # as job.transaction() opens it
                outcome = session.run(operation)
            self.outcome = outcome  # committed
        except Exception as error:
            self.outcome = error
        self._stands.set()
