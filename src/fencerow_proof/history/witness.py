"""Follows one operation from the outside: its writing statements, when they were sent, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from fencerow.core.errors import FencerowError
from fencerow.db.run import Operation, Rows, Statement, Steps, as_int
from fencerow.db.trouble import is_trouble
from fencerow_proof.history.line import UNEXPECTED, Kind
from fencerow_proof.history.recorder import Fact, Recorder, now_us
from fencerow_proof.history.verbs import CLOCKS, VERBS, Verb

T = TypeVar("T")


@dataclass(slots=True)
class Written:
    """One writing statement: what it asked for, and the rows once they are there."""

    number: int
    verb: str
    of: Verb
    statement: Statement
    rows: Rows | None = None


@dataclass
class Witness:
    """One operation under watch. Its invokes are written as its statements go out, its ends by `ended`."""

    recorder: Recorder
    op: int
    tries: int = 0
    done: list[Written] = field(default_factory=list[Written])  # of the try under way
    given_up: list[Written] = field(default_factory=list[Written])  # of earlier tries

    def watching(self, operation: Operation[T]) -> Operation[T]:
        """The same operation, seen by this witness each time it is begun."""
        return msgspec.structs.replace(operation, start=lambda: self._steps(operation.steps))

    def committed(self) -> None:
        """It was answered, and is committed for certain."""
        self._end(None, self._answered)

    def rolled_back(self, code: str) -> None:
        """Its transaction was rolled back for certain."""
        self._end(None, lambda written: self._asked(written, Kind.FAIL, code))

    def undecided(self, code: str) -> None:
        """Whether it happened is not known here."""
        self._end(code, lambda written: self._asked(written, Kind.INFO, code))

    def failed(self, error: BaseException) -> None:
        """It raised; what that says of its effect is the error's own word."""
        code = code_of(error)
        if self.tries > 1 or not is_without_effect(error):
            return self.undecided(code)
        return self.rolled_back(code)

    # --- inside ------------------------------------------------------------------------------------

    def _steps(self, start: Callable[[], Steps[T]]) -> Steps[T]:
        self.tries += 1
        self.given_up += self.done
        self.done = []
        statements = start()
        try:
            statement = next(statements)
            while True:
                rows = yield from self._step(statement)
                statement = statements.send(rows)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            statements.close()

    def _step(self, statement: Statement) -> Steps[Rows]:
        """Let one statement out and its rows in. An error of the statement closes us here."""
        written = self._begun(statement)
        sent_us = now_us()
        rows: Rows = yield statement
        if written is not None:
            written.rows = rows
        column = CLOCKS.get(statement.name)
        if column is not None and rows:
            self.recorder.saw_clock(max(as_int(row[column]) for row in rows), sent_us)
        return rows

    def _begun(self, statement: Statement) -> Written | None:
        verb = VERBS.get(statement.name)
        if verb is None:
            return None
        written = Written(
            len(self.done) + len(self.given_up) + 1, verb.told_as or statement.name, verb, statement
        )
        self.done.append(written)
        facts = verb.asked(statement.params)
        self.recorder.write(
            [
                self.recorder.line(Kind.INVOKE, self.op, written.number, **{"verb": written.verb, **fact})
                for fact in facts
            ]
        )
        return written

    def _answered(self, written: Written) -> list[tuple[Kind, Fact]]:
        if written.rows is None:  # it failed, and the transaction around it went on all the same
            return self._asked(written, Kind.FAIL, "failed inside")
        return written.of.answered(written.statement.params, written.rows)

    def _asked(self, written: Written, kind: Kind, code: str) -> list[tuple[Kind, Fact]]:
        return [(kind, fact | {"code": code}) for fact in written.of.asked(written.statement.params)]

    def _end(self, code: str | None, ends_of: Callable[[Written], list[tuple[Kind, Fact]]]) -> None:
        """Write the ends of all writing statements; those of earlier tries may have been committed unseen."""
        lines: list[Fact] = []
        for written in self.given_up:
            lines += self._lines(written, self._asked(written, Kind.INFO, code or "repeated"))
        for written in self.done:
            lines += self._lines(written, ends_of(written))
        self.recorder.write_end(lines)

    def _lines(self, written: Written, ends: list[tuple[Kind, Fact]]) -> list[Fact]:
        more: Fact = {"tries": self.tries} if self.tries > 1 else {}
        return [
            self.recorder.line(kind, self.op, written.number, **{"verb": written.verb, **fact, **more})
            for kind, fact in ends
        ]


def code_of(error: BaseException) -> str:
    """The code of an error of ours, else its kind; marked as unexpected when no operator could do anything about it."""
    if isinstance(error, FencerowError):
        return error.code
    name = type(error).__name__
    return name if not isinstance(error, Exception) or is_trouble(error) else f"{UNEXPECTED}{name}"


def is_without_effect(error: BaseException) -> bool:
    """Whether an error promises that nothing was stored. Only ours do; of all others nobody knows."""
    return isinstance(error, FencerowError) and error.repeat != "ask"
