"""A transaction on a SQLite file for user code, which writes through its connection and runs operations in it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fencerow.db.run import Operation, Rows, Statement, run
from fencerow.db.sqlite_file import translated
from fencerow.db.strikes import sheltered

T = TypeVar("T")

log = logging.getLogger("fencerow.db")


class OpenFile(Protocol):
    """What a session asks of the file that is open for it."""

    connection: sqlite3.Connection
    path: Path

    def execute(self, statement: Statement) -> Rows: ...
    def begin(self, timeout_s: float, *, writes: bool) -> None: ...
    def undo(self, error: BaseException, *, commits: bool) -> None: ...


class SqliteSession:
    """The transaction that is open on `connection`."""

    def __init__(self, opened: OpenFile) -> None:
        self.connection = opened.connection
        self._opened = opened

    @property
    def is_open(self) -> bool:
        """Whether nobody has ended it by hand."""
        return self.connection.in_transaction

    def flush(self) -> None:
        """Nothing is kept back."""

    async def aflush(self) -> None:
        """Nothing is kept back."""

    @sheltered
    def run(self, operation: Operation[T]) -> T:
        with translated(self._opened.path):
            return run(operation.start(), self._opened.execute)

    async def arun(self, operation: Operation[T]) -> T:
        return await asyncio.to_thread(self.run, operation)

    def abandon(self) -> None:
        """Nobody but its own thread may give the file back; at least no statement keeps it from that."""
        self.connection.interrupt()


@contextmanager
def transaction(opened: OpenFile, timeout_s: float) -> Iterator[SqliteSession]:
    """A transaction for user code that has its lock on the jobs' file; rolled back when the block raises."""
    commits = False
    try:
        opened.begin(timeout_s, writes=True)
        yield SqliteSession(opened)
        commits = opened.connection.in_transaction
        if commits:
            opened.connection.execute("COMMIT")
    except BaseException as error:
        opened.undo(error, commits=commits)
        raise


@asynccontextmanager
async def in_one_thread(session: AbstractContextManager[T]) -> AsyncIterator[T]:
    """A context manager for this event loop: one thread enters and leaves it, because locks belong to a thread."""
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, thread_name_prefix="fencerow-session")
    entering = loop.run_in_executor(thread, session.__enter__)
    try:
        try:
            entered = await shielded(entering)
        except asyncio.CancelledError as error:
            # It may get the lock all the same; only its own thread can give it back.
            thread.submit(_leave_entered, session, error)
            raise
        try:
            yield entered
        except BaseException as error:
            await shielded(loop.run_in_executor(thread, session.__exit__, type(error), error, None))
            raise
        await shielded(loop.run_in_executor(thread, session.__exit__, None, None, None))
    finally:
        thread.shutdown(wait=False)


async def shielded(running: asyncio.Future[T]) -> T:
    """What runs in a thread, to its end: a caller that is cancelled meanwhile leaves it alone."""
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        left_alone(running)
        raise


def left_alone(running: asyncio.Future[Any]) -> None:
    """Nobody waits for it any more: the shield has let go of it, and its error is no news for one who was cancelled."""
    running.add_done_callback(_heard)


def _heard(running: asyncio.Future[Any]) -> None:
    if not running.cancelled():
        running.exception()


def _leave_entered(session: AbstractContextManager[object], error: BaseException) -> None:
    """Roll back a transaction that nobody waits for any more. Runs after the entering, in the same thread."""
    try:
        session.__exit__(type(error), error, None)
    except BaseException as other:
        if other is not error:
            log.warning("a cancelled transaction could not be rolled back: %s", other)
