"""The socket of an async connection in its event loop, below the driver's own ways to wait.

It stays registered from one statement to the next: a start or an end of that is two system calls and a dozen calls of
Python. Before the driver itself waits there, it must be let go: the driver registers it for itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Final

from psycopg import Error, OperationalError
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from fencerow.db.service import soon
from fencerow.db.watchdog import READ_AGAIN_S, Watched, is_broken

# Called once with what a statement was answered, to its end, or with the error that kept the answer from coming.
Then = Callable[[list[PGresult], BaseException | None], None]
NOBODY: Final = -1


class ConnectionWire:
    """Sends what was given to the driver, and calls who asked when it is answered, statement by statement.

    What is not answered yet keeps nobody from asking more, in pipeline mode: the answers come in the order of the
    questions. The mode ends with the last answer. The server is watched from a question on until all is read, and no
    longer: who asked may go on late, since something else keeps the event loop busy.
    """

    __slots__ = ("_descriptor", "_ends", "_found", "_is_writing", "_loop", "_thens", "_watched", "pgconn")

    def __init__(self, pgconn: PGconn, watched: Watched, loop: asyncio.AbstractEventLoop) -> None:
        self.pgconn = pgconn
        self._watched = watched
        watched.given_up = partial(soon, loop, self._read)
        self._loop = loop
        self._descriptor = NOBODY
        self._is_writing = False
        self._thens: deque[Then] = deque()
        self._ends = 0
        self._found: list[PGresult] = []

    @property
    def is_quiet(self) -> bool:
        """Whether all is answered."""
        return not self._thens

    def ask(self, *thens: Then) -> None:
        """Send what was given to the driver, and call one of `thens` for each statement, once, from its event loop,
        with its answer, or with the error that broke the connection: then it is closed.

        Raises:
            psycopg.Error: nothing can be sent any more. Those that it `took` are called by `close`, which is up to you.
        """
        self._thens += thens
        self._watched.busy()
        if self._descriptor == NOBODY:
            self._register()
        self._write()

    def took(self, then: Then) -> bool:
        """Whether this one is called when its statement is answered, or when the connection is closed."""
        return then in self._thens

    def let_go(self) -> None:
        """Somebody else waits at the socket from now on, or nobody."""
        if self._descriptor != NOBODY:
            self._loop.remove_reader(self._descriptor)
            if self._is_writing:
                self._loop.remove_writer(self._descriptor)
                self._is_writing = False
            self._descriptor = NOBODY

    def close(self, error: BaseException | None = None) -> None:
        """Close the connection. Who waits for an answer is called with this error."""
        thens, self._thens = self._thens, deque()
        self._watched.rest()
        self.let_go()
        self.pgconn.finish()
        for then in thens:
            then([], error or OperationalError("the connection was closed before it was answered"))

    def give_up(self, *, tell: bool) -> None:
        """Close the connection. `tell`: who waits for an answer is called, as if a task had been cancelled."""
        if not tell:
            self._thens.clear()
        self.close(asyncio.CancelledError())

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
            self.close(error)

    def _read(self) -> None:
        if not self._thens:
            self.let_go()  # a last word, or the end: whoever takes the connection next finds it there
            return
        try:
            self.pgconn.consume_input()
            if self._is_writing:
                self._write()
            while self._thens and not self.pgconn.is_busy():
                self._take(self.pgconn.get_result())
        except Error as error:
            self.close(error)
            return
        if self._thens and is_broken(self._descriptor):
            # It said why, and its end is behind that. uvloop calls nobody twice for a socket that broke.
            self._loop.call_later(READ_AGAIN_S, self._read, context=Context())

    def _take(self, result: PGresult | None) -> None:
        """Take one result, and call who asked if it was the last.

        Raises:
            psycopg.OperationalError: nothing more will come.
        """
        if result is not None and result.status != ExecStatus.PIPELINE_SYNC:
            self._found.append(result)
            self._ends = 0  # of several statements before one sync each has an end
            return
        self._ends += 1
        is_pipeline = self.pgconn.pipeline_status
        if result is None and is_pipeline and self._ends == 1:
            return  # its sync comes next, unless the connection is gone
        if not self._found:
            raise OperationalError("the server closed the connection before it answered")
        then, found = self._thens.popleft(), self._found
        self._found, self._ends = [], 0
        if not self._thens:
            self._watched.rest()
            if is_pipeline:
                self._leave_pipeline()
        then(found, None)

    def _leave_pipeline(self) -> None:
        try:
            self.pgconn.exit_pipeline_mode()
        except Error:  # what was answered is true all the same
            self.close()
