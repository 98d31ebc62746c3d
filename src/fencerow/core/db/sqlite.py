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
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fencerow.core.db.engine import Traits
from fencerow.core.db.queries import Queries, identifier
from fencerow.core.db.run import Operation, run
from fencerow.core.db.sqlite_file import default_journal, fault, open_file, translated
from fencerow.core.db.sqlite_session import Clock, SqliteSession
from fencerow.core.db.strikes import SHELTER, doorway, here, sheltered
from fencerow.core.db.wakeups import Callback, FileWakes
from fencerow.core.errors import Busy

T = TypeVar("T")

log = logging.getLogger("fencerow.db")

# What a keeper asks of the jobs must not delay its next renewal, whoever locks their file.
KEEPER_WAIT_S = 0.5


class SqliteEngine:
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
        clock: Clock | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        self.queries = queries
        self.prefix = identifier(prefix, "table prefix")
        self.clock = clock or Clock()
        self._busy_timeout_s = busy_timeout_s
        self._jobs_timeout_s = busy_timeout_s if jobs_timeout_s is None else jobs_timeout_s
        self._journal_mode = journal_mode or default_journal()
        self._write_lock = threading.RLock()  # a fair enough queue: SQLite's own waiting is not
        self._workers_lock = threading.Lock()
        self._session_thread: int | None = None  # the one that has a transaction open for user code
        self._jobs: SqliteSession | None = None
        self._workers: SqliteSession | None = None
        self._inherited: list[SqliteSession] = []  # from a parent process; never used
        self._executor: ThreadPoolExecutor | None = None
        self._workers_executor: ThreadPoolExecutor | None = None
        self._wakes = FileWakes(self.path)
        self._pid = os.getpid()

    # --- running ---------------------------------------------------------------------------------

    def run(self, operation: Operation[T]) -> T:
        if here.striker is None:  # nearly always; it spares the shelter
            return self._run(operation)
        with SHELTER:
            return self._run(operation)

    async def arun(self, operation: Operation[T]) -> T:
        loop = asyncio.get_running_loop()
        executor = self._async_executor(operation.writes == "workers")
        return await _shielded(loop.run_in_executor(executor, self._run, operation))

    def _run(self, operation: Operation[T]) -> T:
        try:
            if operation.writes == "workers":
                self._check_process()
                with self._workers_lock:
                    return run(operation.start(), self._session_on_workers().execute)
            self._take_turn(operation.patience_s)
            try:
                return self._session_on_jobs().run_alone(operation, self._jobs_timeout_s)
            finally:
                self._write_lock.release()
        except sqlite3.DatabaseError as error:
            known = fault(error, self.path)
            if known is None:
                raise
            raise known from error

    @doorway
    @contextmanager
    def session(self, *, idle_s: float | None = None) -> Iterator[SqliteSession]:  # noqa: ARG002 (no server to end it)
        self._take_turn()
        try:
            with (
                translated(self.path, around_user_code=True),
                closing(self._open(self._busy_timeout_s)) as session,
            ):
                self._session_thread = threading.get_ident()
                with session.transaction(self._busy_timeout_s):
                    yield session
        finally:
            self._session_thread = None
            self._write_lock.release()

    @asynccontextmanager
    async def asession(self, *, idle_s: float | None = None) -> AsyncIterator[SqliteSession]:  # noqa: ARG002
        # One thread enters and leaves, because the write lock belongs to a thread.
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="fencerow-session")
        session = self.session()
        entering = loop.run_in_executor(thread, session.__enter__)
        try:
            try:
                entered = await _shielded(entering)
            except asyncio.CancelledError as error:
                # It may get the lock all the same; only its own thread can give it back.
                thread.submit(_leave_entered, session, error)
                raise
            try:
                yield entered
            except BaseException as error:
                await _shielded(loop.run_in_executor(thread, session.__exit__, type(error), error, None))
                raise
            await _shielded(loop.run_in_executor(thread, session.__exit__, None, None, None))
        finally:
            thread.shutdown(wait=False)

    # --- wake-ups --------------------------------------------------------------------------------

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
    def listen(self, callback: Callback) -> Callable[[], None]:
        self._check_process()
        return self._wakes.listen(callback)

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

    # --- connections -----------------------------------------------------------------------------

    def close(self) -> None:
        self._wakes.close()
        for executor in (self._executor, self._workers_executor):
            if executor is not None:
                executor.shutdown(wait=True)
        self._executor = self._workers_executor = None
        with self._write_lock, self._workers_lock:
            for session in (self._jobs, self._workers):
                if session is not None:
                    session.close()
            self._jobs = self._workers = None

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def _async_executor(self, for_workers: bool) -> ThreadPoolExecutor:
        self._check_process()
        if for_workers:
            if self._workers_executor is None:
                self._workers_executor = ThreadPoolExecutor(1, thread_name_prefix="fencerow-leases")
            return self._workers_executor
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="fencerow-sqlite")
        return self._executor

    def _check_process(self) -> None:
        """A connection must not cross a fork: the child opens its own and leaves the parent's alone."""
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            # Kept, not closed: closing would checkpoint and remove the log that the parent still writes.
            self._inherited += [known for known in (self._jobs, self._workers) if known]
            self._jobs = self._workers = None
            self._executor = self._workers_executor = None
            self._write_lock, self._workers_lock = threading.RLock(), threading.Lock()
            self._session_thread = None
            # The parent's thread did not come along, and its socket is its own.
            self._wakes = FileWakes(self.path)

    def _session_on_jobs(self) -> SqliteSession:
        if self._jobs is None:
            self._jobs = self._open(self._jobs_timeout_s)
        self._jobs.queries = self.queries  # who examines a database gives its engine more of them
        return self._jobs

    def _session_on_workers(self) -> SqliteSession:
        if self._workers is None:
            self._workers = self._open(self._busy_timeout_s)
        self._workers.queries = self.queries
        return self._workers

    def _open(self, timeout_s: float) -> SqliteSession:
        connection = open_file(
            self.path,
            self.queries,
            self.clock.now_us,
            prefix=self.prefix,
            journal_mode=self._journal_mode,
            timeout_s=timeout_s,
        )
        return SqliteSession(connection, self.queries, self.clock, self.path, self.prefix)

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


async def _shielded(running: asyncio.Future[T]) -> T:
    """What runs in a thread, to its end: a caller that is cancelled meanwhile leaves it alone."""
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        # The shield has let go of it. An error of it is no news for one who was cancelled, and nobody else waits.
        running.add_done_callback(_heard)
        raise


def _heard(running: asyncio.Future[Any]) -> None:
    if not running.cancelled():
        running.exception()


def _leave_entered(session: AbstractContextManager[SqliteSession], error: BaseException) -> None:
    """Roll back a transaction that nobody waits for any more. Runs after the entering, in the same thread."""
    try:
        session.__exit__(type(error), error, None)
    except BaseException as other:
        if other is not error:
            log.warning("a cancelled transaction could not be rolled back: %s", other)
