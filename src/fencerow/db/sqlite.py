"""SQLite: one writer at a time, in the process by a lock and between processes by the file.

Jobs and worker rows live in two files, so that a long transaction on the jobs never delays the
renewal of a lease; the second is attached to every connection. BEGIN IMMEDIATE would lock both, so a
transaction takes the write lock of the one file it writes by a statement that changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import fencerow.db.forks as forks
from fencerow.db.apart import standing_apart
from fencerow.db.begun import Over
from fencerow.db.engine import Traits
from fencerow.db.errors import Busy
from fencerow.db.imprint import imprint
from fencerow.db.one_thread import OneThread
from fencerow.db.queries import Queries, identifier
from fencerow.db.run import Operation, run
from fencerow.db.service import loop_here, soon
from fencerow.db.sqlite_connection import HostClock, SqliteConnection
from fencerow.db.sqlite_file import default_journal, fault, translated
from fencerow.db.sqlite_locks import is_locked
from fencerow.db.sqlite_session import SqliteSession, in_one_thread, left_alone, transaction
from fencerow.db.strikes import SHELTER, doorway, here, sheltered
from fencerow.db.wakeups import Callback, FileWakes

T = TypeVar("T")

# What a keeper asks of the jobs must not delay its next renewal, whoever locks their file.
KEEPER_WAIT_S = 0.5
# How long a fork waits for a transaction of this process to end.
FORK_WAIT_S = 5.0
FORK_WAIT_IN_LOOP_S = 0.5

log = logging.getLogger("fencerow.db")


class SqliteEngine(forks.MadeAnew):
    """Runs operations on one SQLite file."""

    dialect = "sqlite"
    traits = Traits(
        one_writer=True,
        has_server=False,
        takes_copy=False,
        has_periods=False,
        sets_itself_up=True,
        brings_clock=True,
    )

    def __init__(
        self,
        path: str | Path,
        queries: Queries,
        *,
        prefix: str = "fencerow_",
        busy_timeout_s: float = 10.0,
        jobs_timeout_s: float | None = None,
        journal_mode: str | None = None,
        clock: HostClock | None = None,
    ) -> None:
        # Its own name: the workers' file and the wake-ups lie beside it, whatever link the file is reached by.
        self.path = Path(os.path.realpath(path))
        self.queries = queries
        self.prefix = identifier(prefix, "table prefix")
        self.clock = clock or HostClock()
        self._busy_timeout_s = busy_timeout_s
        self._jobs_timeout_s = busy_timeout_s if jobs_timeout_s is None else jobs_timeout_s
        self._journal_mode = journal_mode or default_journal()
        self._inherited: list[SqliteConnection | None] = []  # from a parent process; never used
        self._jobs: SqliteConnection | None = None
        self._workers: SqliteConnection | None = None
        self._check_process()
        forks.ask(self)

    def _forget(self) -> None:
        # Kept, not closed: closing would checkpoint and remove the log that the parent still writes.
        self._inherited += [self._jobs, self._workers]
        self._jobs = self._workers = None
        self._write_lock = threading.RLock()  # a fair enough queue: SQLite's own waiting is not
        self._workers_lock = threading.Lock()
        self._stays_locked = False  # the last who wanted the jobs waited in vain: somebody else has the file
        self._session_thread: int | None = None  # the one that has a transaction open for user code
        self._threads: dict[str, OneThread] = {}  # by their names
        self._wakes = FileWakes(self.path)

    def run(self, operation: Operation[T]) -> T:
        if here.striker is None:  # nearly always; it spares the shelter
            return self._run(operation)
        with SHELTER:
            return self._run(operation)

    def begin(self, operation: Operation[T], over: Over) -> bool:
        """Run an operation without a task, and have `over` called from the event loop: see `Begins`."""
        try:
            self._thread_of(operation).begin(over, self._run, operation, time.monotonic())
        except RuntimeError:
            return False  # there is no thread to be had now: who runs it by `arun` is told
        return True

    async def arun(self, operation: Operation[T]) -> T:
        running: asyncio.Future[T] = self._thread_of(operation).call(self._run, operation, time.monotonic())
        if standing_apart() is not None:
            return await running
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            left_alone(running)
            raise

    def _run(self, operation: Operation[T], asked_at: float | None = None) -> T:
        """`asked_at`: since when it waits in the line of a thread."""
        try:
            if operation.of_workers:
                self._check_process()
                with self._workers_lock:
                    return run(operation.start(), self._connected_to_workers().execute_on_workers)
            self._take_turn(operation.patience_s)
            try:
                return self._in_turn(operation, asked_at)
            finally:
                self._write_lock.release()
        except sqlite3.DatabaseError as error:
            known = fault(error, self.path)
            if known is None:
                raise
            raise known from error

    def _in_turn(self, operation: Operation[T], asked_at: float | None) -> T:
        """Run it on the jobs. Who stood in line behind one that the file refused has waited for the same lock: else the
        last of a hundred would be refused a hundred waits later."""
        waited_s = time.monotonic() - asked_at if self._stays_locked and asked_at is not None else 0.0
        left_s = max(0.0, self._jobs_timeout_s - waited_s)
        try:
            answer = self._connected_to_jobs(left_s).run_alone(operation, left_s, waited_s=waited_s)
        except BaseException as error:
            self._stays_locked = isinstance(error, Busy) or (
                isinstance(error, sqlite3.OperationalError) and is_locked(error)
            )
            raise
        self._stays_locked = False
        return answer

    @doorway
    @contextmanager
    def session(self, *, idle_s: float | None = None) -> Iterator[SqliteSession]:  # noqa: ARG002 (no server to end it)
        with (
            self.turn(),
            translated(self.path, around_user_code=True),
            closing(self._open(self._busy_timeout_s)) as opened,
            transaction(opened, self._busy_timeout_s) as session,
        ):
            yield session

    @contextmanager
    def turn(self) -> Iterator[None]:
        """This process's turn at the file, for a transaction of user code on whatever connection."""
        self._take_turn()
        try:
            self._session_thread = threading.get_ident()
            yield
        finally:
            self._session_thread = None
            self._write_lock.release()

    def asession(self, *, idle_s: float | None = None) -> AbstractAsyncContextManager[SqliteSession]:
        return in_one_thread(self.session(idle_s=idle_s))

    def wake(self, messages: list[str]) -> None:
        if here.striker is None:
            self._wake(messages)
        else:
            with SHELTER:
                self._wake(messages)

    def _wake(self, messages: list[str]) -> None:
        self._check_process()
        self._wakes.wake(messages)

    @sheltered
    def listen(
        self, callback: Callback, *, loop: asyncio.AbstractEventLoop | None = None
    ) -> Callable[[], None]:
        self._check_process()
        return self._wakes.listen(callback if loop is None else partial(soon, loop, callback))

    def imprint(self) -> object | None:
        return imprint(self.path, self.clock.now_us())

    @sheltered
    def flush(self, timeout_s: float) -> None:
        """Almost nothing waits here: listeners were told at once."""
        self._wakes.flush(timeout_s)

    def keeper(self, *, patience_s: float = math.inf) -> SqliteEngine:
        return SqliteEngine(
            self.path,
            self.queries,
            prefix=self.prefix,
            busy_timeout_s=min(self._busy_timeout_s, patience_s),
            jobs_timeout_s=min(KEEPER_WAIT_S, self._busy_timeout_s),
            journal_mode=self._journal_mode,
            clock=self.clock,
        )

    def close(self) -> None:
        self._check_process()
        self._wakes.close()
        threads, self._threads = self._threads, {}
        for thread in threads.values():
            thread.close()
        with self._write_lock, self._workers_lock:
            for session in (self._jobs, self._workers):
                if session is not None:
                    session.close()
            self._jobs = self._workers = None

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def _thread_of(self, operation: Operation[Any]) -> OneThread:
        """The one that runs it for event loops."""
        self._check_process()
        name = "fencerow-leases" if operation.of_workers else "fencerow-sqlite"
        # Of two event loops that come at once both take the one that is kept, and closed.
        return self._threads.get(name) or self._threads.setdefault(name, OneThread(name))

    def before_fork(self) -> Callable[[], None]:
        """Close the connections, and open none until the fork is over, which is said by calling what this returns.

        SQLite remembers in the process's memory which locks its connections hold. A child that inherits some believes
        that they are its own: it would wait for them for ever, or hold none where its parent lets go, and with `wal`
        the parent would remove the log into which the child writes.

        An event loop is not stopped for long: whoever has a transaction open may need it to go on, and uvloop asks
        before each start of another program, too.
        """
        self._check_process()
        over = ExitStack()
        wait_s = FORK_WAIT_S if loop_here() is None else FORK_WAIT_IN_LOOP_S
        for lock in (self._write_lock, self._workers_lock):
            if lock.acquire(timeout=wait_s):
                over.callback(lock.release)
            else:
                log.warning(
                    "forked while a transaction was open on %s: do not use it in the child", self.path
                )
                return over.close
        for opened in (self._jobs, self._workers):
            if opened is not None and not opened.connection.in_transaction:
                opened.close()
        self._jobs = self._workers = None
        return over.close

    def _connected_to_jobs(self, timeout_s: float | None = None) -> SqliteConnection:
        if self._jobs is None:
            self._jobs = self._open(self._jobs_timeout_s if timeout_s is None else timeout_s)
        self._jobs.queries = self.queries  # who examines a database gives its engine more of them
        return self._jobs

    def _connected_to_workers(self) -> SqliteConnection:
        if self._workers is None:
            self._workers = self._open(self._busy_timeout_s)
        self._workers.queries = self.queries
        return self._workers

    def _open(self, timeout_s: float) -> SqliteConnection:
        return SqliteConnection(
            self.path, self.queries, self.clock, self.prefix, self._journal_mode, timeout_s
        )

    def _take_turn(self, patience_s: float | None = None) -> None:
        """Wait for this process's turn at the file: whoever had it releases the write lock.

        Bounded: code inside a transaction may wait for code that waits for it.
        """
        self._check_process()  # before the lock: a fork may have copied it in a thread's hands
        wait_s = self._busy_timeout_s if patience_s is None else min(patience_s, self._busy_timeout_s)
        # A thread that has a transaction open waits for nobody but itself, and would do so for nothing.
        waits_for_itself = self._session_thread == threading.get_ident()
        if waits_for_itself or not self._write_lock.acquire(timeout=wait_s):
            raise Busy(
                f"{self.path} stayed locked by a transaction of this process for {wait_s:g} s",
                "SQLite has one writer at a time",
                "inside job.transaction() pass its connection on: using(connection=...)",
            )
