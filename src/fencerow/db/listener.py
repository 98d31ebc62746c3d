"""LISTEN on a direct connection of its own, in a thread: the same for sync and async users.

After every (re)connect it listens first and then reports None, "look for yourself": what was
announced while nobody listened is found by the look, and nothing can fall between the two.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import sql

log = logging.getLogger("fencerow.listener")

WAIT_S = 1.0
RECONNECT_S = (0.1, 0.2, 0.5, 1.0, 2.0)


class Listener:
    """One LISTEN connection that comes back by itself."""

    def __init__(
        self, conninfo: str, channel: str, callback: Callable[[str | None], None], settings: dict[str, Any]
    ) -> None:
        self._conninfo = conninfo
        self._channel = channel
        self._callback = callback
        self._settings = settings
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fencerow-listen", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop within about a second."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join(WAIT_S * 3)

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            try:
                with psycopg.connect(self._conninfo, autocommit=True, **self._settings) as connection:
                    connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                    failures = 0
                    self._tell(None)
                    self._hear(connection)
            except psycopg.Error as error:
                if not failures:
                    log.warning(
                        "LISTEN connection lost (%s); polling goes on", str(error).strip().splitlines()[:1]
                    )
                self._stopped.wait(RECONNECT_S[min(failures, len(RECONNECT_S) - 1)])
                failures += 1

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stopped.is_set():
            for note in connection.notifies(timeout=WAIT_S):
                self._tell(note.payload)
                if self._stopped.is_set():
                    return

    def _tell(self, message: str | None) -> None:
        try:
            self._callback(message)
        except Exception:
            log.exception("a listener for wake-ups failed")
