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
import random
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from fencerow.core.db.queries import Queries, identifier
from fencerow.core.db.run import Operation
from fencerow.core.db.sockets import FileWakes
from fencerow.core.db.sqlite_faults import committing, is_locked, translated
from fencerow.core.db.sqlite_opening import default_journal, open_file
from fencerow.core.db.sqlite_session import Clock, SqliteSession
from fencerow.core.db.strikes import doorway, sheltered
from fencerow.core.errors import Busy

T = TypeVar("T")

log = logging.getLogger("fencerow.db")

LOCK_LOOK_S = 0.001  # between two looks for a lock
KEEPER_WAIT_S = (
    0.5  # what a keeper asks of the jobs must not delay its next renewal, whoever locks their file
)


class SqliteEngine:
    """Runs operations on one SQLite file."""

    dialect = "sqlite"

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
        self._connection: sqlite3.Connection | None = None
        self._workers_connection: sqlite3.Connection | None = None
        self._inherited: list[sqlite3.Connection] = []  # from a parent process; never used
        self._executor: ThreadPoolExecutor | None = None
        self._workers_executor: ThreadPoolExecutor | None = None
        self._wakes = FileWakes(self.path)
        self._pid = os.getpid()

    # --- running ---------------------------------------------------------------------------------

    @sheltered
    def run(self, operation: Operation[T]) -> T:
        self._check_process()
        if operation.writes == "workers":
            with self._workers_lock, translated(self.path):
                return SqliteSession(self._workers(), self.queries, self.clock, self.path).run(operation)
        with self._writing(operation.patience_s), translated(self.path):
            connection = self._main()
            taking_turns = operation.writes or operation.both_files
            begin = self._begin_writing if taking_turns else self._begin_reading
            with self._transaction(connection, partial(begin, self._jobs_timeout_s)):
                return SqliteSession(connection, self.queries, self.clock, self.path).run(operation)

    async def arun(self, operation: Operation[T]) -> T:
        loop = asyncio.get_running_loop()
        executor = self._async_executor(operation.writes == "workers")
        return await asyncio.shield(loop.run_in_executor(executor, self.run, operation))

    @doorway
    @contextmanager
    def session(self, *, idle_s: float | None = None) -> Iterator[SqliteSession]:  # noqa: ARG002 (no server to end it)
        with self._writing(), translated(self.path, around_user_code=True):
            connection = self._open(self._busy_timeout_s)
            try:
                self._session_thread = threading.get_ident()
                with self._transaction(connection, partial(self._begin_writing, self._busy_timeout_s)):
                    yield SqliteSession(connection, self.queries, self.clock, self.path)
            finally:
                self._session_thread = None
                connection.close()

    @asynccontextmanager
    async def asession(self, *, idle_s: float | None = None) -> AsyncIterator[SqliteSession]:  # noqa: ARG002
        # One thread enters and leaves, because the write lock belongs to a thread.
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="fencerow-session")
        session = self.session()
        entering = loop.run_in_executor(thread, session.__enter__)
        try:
            try:
                entered = await asyncio.shield(entering)
            except asyncio.CancelledError as error:
                # It may get the lock all the same; only its own thread can give it back.
                thread.submit(_leave_entered, session, error)
                raise
            try:
                yield entered
            except BaseException as error:
                await asyncio.shield(loop.run_in_executor(thread, session.__exit__, type(error), error, None))
                raise
            await asyncio.shield(loop.run_in_executor(thread, session.__exit__, None, None, None))
        finally:
            thread.shutdown(wait=False)

    # --- wake-ups --------------------------------------------------------------------------------

    @sheltered
    def wake(self, messages: list[str]) -> None:
        self._check_process()
        self._wakes.wake(messages)

    @sheltered
    def listen(self, callback: Callable[[str | None], None]) -> Callable[[], None]:
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
            for connection in (self._connection, self._workers_connection):
                if connection is not None:
                    connection.close()
            self._connection = self._workers_connection = None

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
            self._inherited += [known for known in (self._connection, self._workers_connection) if known]
            self._connection = self._workers_connection = None
            self._executor = self._workers_executor = None
            self._write_lock, self._workers_lock = threading.RLock(), threading.Lock()
            self._session_thread = None
            self._wakes = FileWakes(
                self.path
            )  # the parent's thread did not come along, and its socket is its own

    def _main(self) -> sqlite3.Connection:
        self._check_process()
        if self._connection is None:
            self._connection = self._open(self._jobs_timeout_s)
        return self._connection

    def _workers(self) -> sqlite3.Connection:
        self._check_process()
        if self._workers_connection is None:
            self._workers_connection = self._open(self._busy_timeout_s)
        return self._workers_connection

    def _open(self, timeout_s: float) -> sqlite3.Connection:
        return open_file(
            self.path,
            self.queries,
            self.clock,
            prefix=self.prefix,
            journal_mode=self._journal_mode,
            timeout_s=timeout_s,
        )

    @contextmanager
    def _writing(self, patience_s: float | None = None) -> Iterator[None]:
        """This process's turn at the file. Bounded: code inside a transaction may wait for code that waits for it."""
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
        try:
            yield
        finally:
            self._write_lock.release()

    @contextmanager
    def _transaction(
        self, connection: sqlite3.Connection, begin: Callable[[sqlite3.Connection], None]
    ) -> Iterator[None]:
        try:
            begin(connection)
            yield
            if connection.in_transaction:
                with committing(self.path):
                    connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _begin_writing(self, timeout_s: float, connection: sqlite3.Connection) -> None:
        """Take the write lock of the jobs' file alone, before anything is read: a lock taken later fails at once."""
        self._begin(connection, timeout_s, partial(self._touched, connection, timeout_s))

    def _begin_reading(self, timeout_s: float, connection: sqlite3.Connection) -> None:
        """Take the read lock of the jobs' file. In a rollback journal each commit elsewhere shuts readers out."""
        self._begin(connection, timeout_s, partial(_looked, connection))

    def _begin(self, connection: sqlite3.Connection, timeout_s: float, took: Callable[[bool], bool]) -> None:
        """Open a transaction that has its lock. `took` tries to get it; the last time it raises what keeps it away.

        SQLite waits longer after each try, so that whoever has waited longest looks least often, and beside a process
        that writes without a pause comes to nothing for seconds. Here everybody looks equally often.
        """
        until = time.monotonic() + timeout_s
        _wait_for_locks(connection, 0.0)
        try:
            connection.execute("BEGIN")
            while not took(time.monotonic() >= until):
                time.sleep(random.uniform(0.5, 1.5) * LOCK_LOOK_S)  # noqa: S311 (jitter, not a secret)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            _wait_for_locks(connection, timeout_s)

    def _touched(self, connection: sqlite3.Connection, timeout_s: float, is_last: bool) -> bool:
        """Try a write that changes no row but takes the lock; before the first migration there is no table to touch."""
        try:
            connection.execute(f"DELETE FROM main.{self.prefix}queues WHERE 0")  # noqa: S608 (a checked identifier)
        except sqlite3.OperationalError as error:
            if not is_last and is_locked(error):
                return False
            if "no such table" not in str(error):
                raise
            connection.execute("ROLLBACK")
            _wait_for_locks(connection, timeout_s)
            connection.execute("BEGIN IMMEDIATE")
        return True


def _looked(connection: sqlite3.Connection, is_last: bool) -> bool:
    """Try a read that finds no row but takes the lock, which stays until the transaction ends."""
    try:
        connection.execute("SELECT 1 FROM main.sqlite_master LIMIT 0").fetchall()
    except sqlite3.OperationalError as error:
        if is_last or not is_locked(error):
            raise
        return False
    return True


def _leave_entered(session: AbstractContextManager[SqliteSession], error: BaseException) -> None:
    """Roll back a transaction that nobody waits for any more. Runs after the entering, in the same thread."""
    try:
        session.__exit__(type(error), error, None)
    except BaseException as other:
        if other is not error:
            log.warning("a cancelled transaction could not be rolled back: %s", other)


def _wait_for_locks(connection: sqlite3.Connection, timeout_s: float) -> None:
    """How long SQLite itself waits for a lock from now on."""
    connection.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}")
