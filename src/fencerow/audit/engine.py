"""The engine by which a person changes something: it writes beside each change who made it.

It knows the statements that change something by what the wings say of them, see `ChangeByHand`. So no verb can forget
its entry, and who loses a race leaves none.
"""

from __future__ import annotations

import math
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import cache, partial
from typing import Any, TypeVar

import msgspec

from fencerow.audit.entry import told
from fencerow.audit.operations import note, noted
from fencerow.core.model.person import Person
from fencerow.core.wing import ChangeByHand, wings
from fencerow.db.borrow import Borrowed
from fencerow.db.engine import AsyncSession, Engine, Session
from fencerow.db.run import Operation, Steps

T = TypeVar("T")

# As they are written, each once, in order: one act that goes by parts is one entry. They may be as many as the jobs.
Entries = dict[bytes, None]


@cache
def changes() -> Mapping[str, ChangeByHand]:
    """What people change by hand, by the name of the statement."""
    return {change.statement: change for wing in wings() for change in wing.changes}


class AuditedEngine:
    """Stands before another engine for one person.

    What runs on a connection that was lent to us is not noted: no person comes with one.
    """

    def __init__(self, inner: Engine, person: Person) -> None:
        self.inner = inner
        self.person = person
        self.dialect = inner.dialect
        self.traits = inner.traits
        self.queries = inner.queries

    def run(self, operation: Operation[T]) -> T:
        if not operation.writes:
            return self.inner.run(operation)
        seen: Entries = {}
        if self._stands_alone(operation):
            answer = self.inner.run(watched(operation, self.person, seen))
            if seen:
                self.inner.run(note(seen))
            return answer
        return self.inner.run(audited(operation, self.person))

    async def arun(self, operation: Operation[T]) -> T:
        if not operation.writes:
            return await self.inner.arun(operation)
        seen: Entries = {}
        if self._stands_alone(operation):
            answer = await self.inner.arun(watched(operation, self.person, seen))
            if seen:
                await self.inner.arun(note(seen))
            return answer
        return await self.inner.arun(audited(operation, self.person))

    def _stands_alone(self, operation: Operation[Any]) -> bool:
        """SQLite has workers in a file of their own, so what is written there is noted in a transaction after it."""
        return self.traits.one_writer and operation.writes == "workers"

    @contextmanager
    def session(self, *, idle_s: float | None = None) -> Iterator[Session]:
        with self.inner.session(idle_s=idle_s) as session:
            yield AuditedSession(session, self.person)

    def asession(self, *, idle_s: float | None = None) -> AbstractAsyncContextManager[AsyncSession]:
        """As it is: no verb of a person has an open transaction in an event loop."""
        return self.inner.asession(idle_s=idle_s)

    def lending(self, borrowed: Borrowed) -> Borrowed:
        return borrowed

    def wake(self, messages: list[str]) -> None:
        self.inner.wake(messages)

    def listen(
        self, callback: Callable[[str | None], None], *, loop: AbstractEventLoop | None = None
    ) -> Callable[[], None]:
        return self.inner.listen(callback, loop=loop)

    def imprint(self) -> object | None:
        return self.inner.imprint()

    def flush(self, timeout_s: float) -> None:
        self.inner.flush(timeout_s)

    def keeper(self, *, patience_s: float = math.inf) -> Engine:
        return self.inner.keeper(patience_s=patience_s)

    def close(self) -> None:
        self.inner.close()

    async def aclose(self) -> None:
        await self.inner.aclose()


class AuditedSession:
    """An open transaction: the entries are written in it."""

    def __init__(self, inner: Session, person: Person) -> None:
        self._inner = inner
        self._person = person

    @property
    def connection(self) -> Any:
        return self._inner.connection

    @property
    def is_open(self) -> bool:
        return self._inner.is_open

    def run(self, operation: Operation[T]) -> T:
        return self._inner.run(audited(operation, self._person) if operation.writes else operation)

    def flush(self) -> None:
        self._inner.flush()

    def abandon(self) -> None:
        self._inner.abandon()


def audited(operation: Operation[T], person: Person) -> Operation[T]:
    """The operation, with the entries of what it changed in its own transaction."""
    return msgspec.structs.replace(
        operation, start=partial(_audited, operation.start, person), alone=False, prepared=False
    )


def watched(operation: Operation[T], person: Person, seen: Entries) -> Operation[T]:
    """The operation as it is; the entries of what its last run changed are in `seen` afterwards."""
    return msgspec.structs.replace(operation, start=partial(_watched, operation.start, person, seen))


def _audited(start: Callable[[], Steps[T]], person: Person) -> Steps[T]:
    seen: Entries = {}
    answer = yield from _watched(start, person, seen)
    yield from noted(seen)
    return answer


def _watched(start: Callable[[], Steps[T]], person: Person, seen: Entries) -> Steps[T]:
    seen.clear()
    steps = start()
    try:
        statement = next(steps)
        while True:
            try:
                rows = yield statement
            except BaseException as error:
                statement = steps.throw(error)
                continue
            change = changes().get(statement.name)
            entry = None if change is None else told(change, person, statement.params, rows)
            if entry is not None:
                seen[msgspec.json.encode(entry)] = None
            statement = steps.send(rows)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        steps.close()
