"""Wake-ups on the channel of one PostgreSQL database, from whichever of its connections is free."""

from __future__ import annotations

from typing import Any

import psycopg

from fencerow.db.forks import MadeAnew
from fencerow.db.pools import Pools
from fencerow.db.prepared import NOTIFY, TAKES_TWO
from fencerow.db.queries import pyformat
from fencerow.db.wakeups import WakeupSender

NOTIFY_ALONE: Any = pyformat(NOTIFY)  # psycopg wants a literal


class WakeupChannel(MadeAnew):
    """What is posted goes from a thread, which begins when something is posted first.

    A fork's child has a sender of its own; so has whoever goes on after `close`.
    """

    def __init__(self, pools: Pools, channel: str) -> None:
        self._pools = pools
        self.channel = channel
        self._check_process()

    def _forget(self) -> None:
        self._sender = WakeupSender(self._notify)

    def post(self, messages: list[str]) -> None:
        """Have them sent soon."""
        self._check_process()
        self._sender.post(messages)

    def taken_along(self, messages: list[str]) -> list[str] | None:
        """These and what has gathered, to be sent together with a statement, or posted again. None: they gather on."""
        self._check_process()
        return self._sender.taken_along(messages) if TAKES_TWO else None

    def flush(self, timeout_s: float) -> None:
        """Wait until all that was posted is sent, at most this long."""
        self._check_process()
        self._sender.flush(timeout_s)

    def close(self) -> None:
        """Send what was posted, and end the thread. Before the pools are closed: it would open another for that."""
        self._check_process()
        sender, self._sender = self._sender, WakeupSender(self._notify)
        sender.close(1.0)

    def _notify(self, messages: list[str]) -> None:
        try:
            self._send(messages)
        except psycopg.Error as error:
            if not self._pools.preparing.failed(error):
                raise
            self._send(messages)

    def _send(self, messages: list[str]) -> None:
        with self._pools.connection() as connection, self._pools.watched(connection) as watched:
            watched.busy()
            told = {"channel": self.channel, "messages": messages}
            connection.execute(NOTIFY_ALONE, told, prepare=True)
