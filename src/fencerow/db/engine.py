"""What every engine offers."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from fencerow.db.begun import Over
from fencerow.db.queries import Queries
from fencerow.db.run import Operation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Traits:
    """What is so of an engine, for whoever decides by it. The dialect chooses the text of statements, nothing else."""

    one_writer: bool
    """One transaction writes at a time: whoever has it open makes all wait, and commits come in the order of writes."""

    has_server: bool
    """A server runs the statements: it may finish one whose connection was lost, and forget some in a failover."""

    takes_copy: bool
    """Many rows may go in by COPY."""

    has_periods: bool
    """Finished jobs lie in tables by period, which are made ahead and dropped whole."""

    sets_itself_up: bool
    """Tables that are missing are made at the first use; elsewhere an operator migrates."""

    brings_clock: bool
    """The database's clock comes with the connection; elsewhere it is a function of the schema."""


class Session(Protocol):
    """One open transaction on a connection of ours that user code may write through."""

    @property
    def connection(self) -> Any:
        """The driver's own connection. The transaction is ended by us, never through it."""

    @property
    def is_open(self) -> bool:
        """Whether nobody has ended it by hand. Asks nobody."""
        ...

    def run(self, operation: Operation[T]) -> T:
        """Run an operation inside this transaction."""
        ...

    def flush(self) -> None:
        """Send what the user's session keeps back, if there is one."""

    def abandon(self) -> None:
        """End it from any other thread, for good: nobody waits for whoever has it.

        PostgreSQL rolls back at once; on SQLite a statement is interrupted, and the file is free when its thread comes
        back.
        """


class AsyncSession(Protocol):
    """The same for async drivers. On SQLite the connection is a plain sqlite3 one."""

    @property
    def connection(self) -> Any: ...

    @property
    def is_open(self) -> bool: ...

    async def arun(self, operation: Operation[T]) -> T: ...

    async def aflush(self) -> None: ...

    def abandon(self) -> None:
        """As that of `Session`."""


@runtime_checkable
class Begins(Protocol):
    """An engine that can send a short operation at once."""

    def begin(self, operation: Operation[T], over: Over) -> bool:
        """Send an operation without a task, and have `over` called from the event loop with its result or its error.

        False: it must be run by `arun`; nothing was sent.
        """
        ...


class Engine(Protocol):
    """A database that can run operations, sync and async, each as one transaction of its own.

    Errors are those of `fencerow.errors` for what an operator can do something about (unreachable,
    busy, read-only, full, schema missing, outcome unknown); anything else, integrity errors among
    them, reaches the caller unchanged.
    """

    dialect: str
    traits: Traits
    queries: Queries

    def run(self, operation: Operation[T]) -> T:
        """Run an operation and commit."""
        ...

    async def arun(self, operation: Operation[T]) -> T:
        """Run an operation and commit. A cancelled caller does not cancel it: the outcome is then unknown to it."""
        ...

    def session(self, *, idle_s: float | None = None) -> AbstractContextManager[Session]:
        """A transaction for user code: commits at the end of the block, rolls back on an exception.

        `idle_s`: PostgreSQL ends it when nothing was said in it for so long, so that a process that is stopped
        keeps its locks no longer. Without it the server waits for as long as the connection stands.
        """
        ...

    def asession(self, *, idle_s: float | None = None) -> AbstractAsyncContextManager[AsyncSession]: ...

    def wake(self, messages: list[str]) -> None:
        """Tell listeners, soon and without making the caller wait. A hint: it may be lost."""

    def listen(
        self, callback: Callable[[str | None], None], *, loop: AbstractEventLoop | None = None
    ) -> Callable[[], None]:
        """Call back with each message, and with None when some may have been missed: in this event loop, or without
        one in another thread.

        Returns the function that stops it. Where an event loop is told, call that in another thread.
        """
        ...

    def imprint(self) -> object | None:
        """What is another after each commit of anybody, and after a leap of the clock: who reads the imprint that
        was there before an earlier look would find what that look found. None where it cannot be told. Asks no
        database, and waits for nobody.

        It tells nothing of the workers' rows, and where commits become visible by shared memory nobody relies on it for
        long: see `LastImprint`.
        """
        ...

    def flush(self, timeout_s: float) -> None:
        """Send the wake-ups that are still waiting."""

    def keeper(self, *, patience_s: float = ...) -> Engine:
        """An engine with a connection of its own for lease renewals: nothing else may make them wait.

        It waits for no answer longer than `patience_s`: a renewal that comes too late is none.
        """
        ...

    def close(self) -> None:
        """Close what was opened for sync use."""

    async def aclose(self) -> None:
        """Close what was opened for this event loop, then the rest."""
