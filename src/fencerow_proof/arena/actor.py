"""An actor: a script of operations, played one step at a time by whoever holds the database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencerow.db.run import Operation, Rows, Statement, Steps, execute
from fencerow.testing.sweeping import Script as Script


class Abandoned(Exception):
    """Raised inside an operation by a test: its transaction is rolled back, as a user's would be."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who works on the database. `script` is given what the setup returned."""

    name: str
    script: Callable[[Any], Script]


def doing(name: str, *operations: Operation[Any]) -> Actor:
    """An actor that does these operations one after the other, whatever comes of each; returns the last result."""

    def script(_: Any) -> Script:
        result = None
        for operation in operations:
            result = yield operation
        return result

    return Actor(name, script)


def transaction(name: str, start: Callable[[], Steps[Any]]) -> Operation[Any]:
    """Several operations in one transaction, as a user's own: `yield from store.submit(...).steps()`, and more."""
    return Operation(name, start)


def later(seconds: float) -> Operation[None]:
    """Time passes: the clock that decides about leases, due times and keys moves on."""

    def steps() -> Steps[None]:
        yield from execute("later", s=seconds)

    return Operation("later", steps, alone=True)


@dataclass(slots=True)
class Course:
    """How far an actor has come: the operation it is in, and the statement that is next.

    It does no I/O. `pending` is None inside a transaction when only its end is left.
    """

    actor: Actor
    context: Any
    pending: Statement | None = None
    operation: Operation[Any] | None = None
    begun: bool = False
    done: bool = False
    result: Any = None
    restarts: int = 0
    _script: Script | None = None
    _steps: Steps[Any] | None = None
    _outcome: tuple[Any, Exception | None] = field(default=(None, None))

    def open(self) -> None:
        """Take the first operation of the script."""
        self._script = self.actor.script(self.context)
        self._next(lambda script: next(script))

    @property
    def aborts(self) -> bool:
        """Whether the transaction's end will be a rollback."""
        return self._outcome[1] is not None

    def answered(self, rows: Rows) -> None:
        """Go on with the rows of the pending statement."""
        self._go(lambda steps: steps.send(rows))

    def ended(self) -> None:
        """Go on after the transaction's end."""
        self.begun = False
        result, error = self._outcome
        self._deliver(result, error)

    def failed(self, error: Exception) -> None:
        """The database refused the pending statement; its transaction is gone."""
        self._close()
        self.begun = False
        self._deliver(None, error)

    def restart(self) -> None:
        """Run the operation from scratch, as an engine does after losing to contention."""
        assert self.operation is not None
        self.restarts += 1
        self.begun = False
        self._close()
        self._enter(self.operation)

    def _enter(self, operation: Operation[Any]) -> None:
        self.operation, self.pending, self._outcome = operation, None, (None, None)
        self._steps = operation.steps()
        self._go(next)

    def _go(self, move: Callable[[Steps[Any]], Statement]) -> None:
        assert self._steps is not None
        try:
            self.pending = move(self._steps)
            return
        except StopIteration as stop:
            self._outcome = (stop.value, None)
        except AssertionError:
            raise
        except Exception as error:
            self._outcome = (None, error)
        self.pending = None
        if not self.begun:
            self.ended()

    def _deliver(self, result: Any, error: Exception | None) -> None:
        self.restarts = 0
        if error is not None:
            self._next(lambda script: script.throw(error))
        else:
            self._next(lambda script: script.send(result))

    def _next(self, move: Callable[[Script], Operation[Any]]) -> None:
        assert self._script is not None
        try:
            operation = move(self._script)
        except StopIteration as stop:
            self.done, self.result = True, stop.value
        except AssertionError:
            raise
        except Exception as error:
            self.done, self.result = True, error
        else:
            self._enter(operation)

    def _close(self) -> None:
        if self._steps is not None:
            self._steps.close()
