"""LISTEN on a direct connection of its own: the same for sync and async users.

A thread opens it, and opens another when it was lost. The thread hears too, or an event loop does: then nobody hands
over what has come, which costs a start a thread's turn on a busy machine.

After every (re)connect it listens first and then reports None, "look for yourself": what was
announced while nobody listened is found by the look, and nothing can fall between the two.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

import psycopg
from psycopg import sql

from fencerow.db.service import Service, soon
from fencerow.db.socket_pairs import socket_pair
from fencerow.db.watchdog import READ_AGAIN_S, Watched, is_broken

log = logging.getLogger("fencerow.listener")

JOIN_S = 3.0
LOOP_S = 30.0  # how often it is seen that an event loop was closed which heard
# Where nothing is announced it is idle all the time, and a server may end those that are. What stands between keeps it
# by the keepalives of TCP.
LISTEN = sql.SQL("SET idle_session_timeout = 0; LISTEN {}")
RECONNECT_S = (0.1, 0.2, 0.5, 1.0, 2.0)


class Listener:
    """One LISTEN connection that comes back by itself. `loop`: the event loop that hears and in which the callback is
    called; else a thread of its own."""

    def __init__(
        self,
        conninfo: str,
        channel: str,
        callback: Callable[[str | None], None],
        settings: dict[str, Any],
        watch: Callable[[psycopg.Connection[Any]], Watched],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._conninfo = conninfo
        self._channel = channel
        self._callback = callback
        self._settings = settings
        self._watch = watch
        self._loop = loop
        self._stopped = threading.Event()
        self._woken = threading.Event()  # the thread, while an event loop hears
        self._stop_here, self._stop_there = socket_pair()
        self._failures = 0  # of connections in a row
        self._service = Service(
            "fencerow-listen", self._turn, rest=self._stopped.wait, over=self._stop_here.close
        )

    def start(self) -> None:
        """Begin to listen.

        Raises:
            RuntimeError: the system refuses another thread.
        """
        try:
            self._service.need()
        except BaseException:
            self._stop_here.close()
            self._stop_there.close()
            raise

    def stop(self) -> None:
        """Stop at once, or when a connection attempt under way has ended."""
        self._stopped.set()
        self._woken.set()
        self._stop_there.close()
        self._service.join(JOIN_S)

    def _turn(self) -> bool:
        """Listen on one connection for as long as it lasts."""
        if self._stopped.is_set():
            return False
        try:
            with psycopg.connect(self._conninfo, autocommit=True, **self._settings) as connection:
                with self._watch(connection) as watched:
                    watched.busy()
                    connection.execute(LISTEN.format(sql.Identifier(self._channel)))
                self._failures = 0
                if self._loop is None:
                    self._tell(None)
                    self._hear(connection)
                else:
                    self._hear_on(self._loop, connection)
        except psycopg.Error as error:
            if not self._failures:
                log.warning(
                    "LISTEN connection lost (%s); polling goes on", str(error).strip().splitlines()[:1]
                )
            self._stopped.wait(RECONNECT_S[min(self._failures, len(RECONNECT_S) - 1)])
            self._failures += 1
        return True

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._stop_here, selectors.EVENT_READ)
            while not self._stopped.is_set():
                selector.select()
                self._take(connection)

    def _hear_on(self, loop: asyncio.AbstractEventLoop, connection: psycopg.Connection[Any]) -> None:
        """Let the event loop hear, until the connection is lost or nobody listens any more.

        The loop lets go of the socket before it is closed here: another may get its number.
        """
        fd, over = connection.fileno(), Future[None]()

        def begin() -> None:
            try:
                loop.add_reader(fd, heard)
            except Exception as error:
                let_go(error)  # the next turn of the thread tries again
            else:
                self._tell(None)

        def heard() -> None:
            if over.done():
                return  # the thread may be closing it
            try:
                self._take(connection)
            except Exception as error:
                let_go(error)
                return
            if is_broken(fd):  # its end is behind that, and uvloop calls nobody twice for it
                loop.call_later(READ_AGAIN_S, heard)

        def let_go(error: Exception | None = None) -> None:
            if over.done():
                return  # the number may be another's by now
            loop.remove_reader(fd)
            over.set_result(None) if error is None else over.set_exception(error)
            self._woken.set()

        self._woken.clear()
        soon(loop, begin)
        while not (self._stopped.is_set() or self._woken.wait(LOOP_S) or loop.is_closed()):
            pass
        soon(loop, let_go)
        while not loop.is_closed() and not over.done():
            wait([over], LOOP_S)
        if over.done():
            over.result()
        else:
            self._stopped.set()  # nobody hears any more

    def _take(self, connection: psycopg.Connection[Any]) -> None:
        """Tell what has come."""
        # Below the driver's own generator, which would look for more before it hands the first one out.
        connection.pgconn.consume_input()
        while (note := connection.pgconn.notifies()) is not None:
            self._tell(note.extra.decode())

    def _tell(self, message: str | None) -> None:
        try:
            self._callback(message)
        except Exception:
            log.exception("a listener for wake-ups failed")
