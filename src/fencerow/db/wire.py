"""The socket of an async connection in its event loop, below the driver's own ways to wait.

It stays registered from one statement to the next: a start or an end of that is two system calls and a dozen calls of
Python. Before the driver itself waits there, it must be let go: the driver registers it for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Final

from psycopg import Error, OperationalError
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

Answers = list[list[PGresult]]  # of each statement of a message what was answered, to its end
Then = Callable[[Answers, BaseException | None], None]
NOBODY: Final = -1


class ConnectionWire:
    """Sends what was given to the driver, and calls who asked when all is answered. One message at a time."""

    __slots__ = (
        "_answers", "_descriptor", "_ends", "_found", "_is_writing", "_left", "_loop", "_then", "pgconn",
    )  # fmt: skip

    def __init__(self, pgconn: PGconn, loop: asyncio.AbstractEventLoop) -> None:
        self.pgconn = pgconn
        self._loop = loop
        self._descriptor = NOBODY
        self._is_writing = False
        self._then: Then | None = None
        self._left = self._ends = 0
        self._answers: Answers = []
        self._found: list[PGresult] = []

    def ask(self, count: int, then: Then) -> None:
        """Send what was given to the driver, so many statements, and call `then` from the event loop with what was
        answered until all was, or until the connection broke: then it is closed.

        Raises:
            psycopg.Error: nothing can be sent any more. The connection is closed, and nobody is called.
        """
        self._then, self._left, self._ends, self._answers, self._found = then, count, 0, [], []
        try:
            if self._descriptor == NOBODY:
                self._register()
            self._write()
        except BaseException:
            self.close()
            raise

    def let_go(self) -> None:
        """Somebody else waits at the socket from now on, or nobody."""
        if self._descriptor != NOBODY:
            self._loop.remove_reader(self._descriptor)
            if self._is_writing:
                self._loop.remove_writer(self._descriptor)
                self._is_writing = False
            self._descriptor = NOBODY

    def close(self) -> None:
        """Close the connection. Nobody is called for what is not answered yet."""
        self._then = None
        self.let_go()
        self.pgconn.finish()

    def give_up(self, *, tell: bool) -> None:
        """Close the connection. `tell`: who waits for an answer is called, as if a task had been cancelled."""
        then = self._then
        self.close()
        if then is not None and tell:
            then([], asyncio.CancelledError())

    def _register(self) -> None:
        """In a context of its own: the one of whoever asks first must not live as long."""
        descriptor = self.pgconn.socket
        Context().run(self._loop.add_reader, descriptor, self._read)
        self._descriptor = descriptor

    def _write(self) -> None:
        """What the socket does not take at once goes when it takes more. It is read meanwhile: the server may wait."""
        if self.pgconn.flush():
            if not self._is_writing:
                Context().run(self._loop.add_writer, self._descriptor, self._write_more)
                self._is_writing = True
        elif self._is_writing:
            self._loop.remove_writer(self._descriptor)
            self._is_writing = False

    def _write_more(self) -> None:
        try:
            self._write()
        except Error as error:
            self._end(error)

    def _read(self) -> None:
        if self._then is None:
            self.let_go()  # a last word, or the end: whoever takes the connection next finds it there
            return
        try:
            self.pgconn.consume_input()
            if self._is_writing:
                self._write()
            is_over = self._take()
        except Error as error:
            self._end(error)
        else:
            if is_over:
                self._end(None)

    def _take(self) -> bool:
        """Take what has come; returns whether that is all.

        Raises:
            psycopg.OperationalError: nothing more will come.
        """
        pgconn = self.pgconn
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is not None and result.status != ExecStatus.PIPELINE_SYNC:
                self._found.append(result)
                continue
            self._ends += 1
            if result is None and pgconn.pipeline_status and self._ends == 1:
                continue  # in a message of several its sync comes next, unless the connection is gone
            if not self._found:
                raise OperationalError("the server closed the connection before it answered")
            self._answers.append(self._found)
            self._found, self._ends, self._left = [], 0, self._left - 1
            if self._left == 0:
                return True
        return False

    def _end(self, error: Error | None) -> None:
        then, answers = self._then, self._answers
        self._then, self._answers = None, []
        if error is not None:
            self.close()
        if then is not None:
            then(answers, error)
