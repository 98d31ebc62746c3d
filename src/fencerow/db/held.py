"""A connection of an event loop's pool that stays at hand from one statement to the next.

To go through the pool is two locks, a check and a wait that nobody needs, as long as nobody else waits for a connection
there. What is at hand is anybody's: whoever wants a connection looks here first.
"""

from __future__ import annotations

import asyncio
import math
import select
import time
from collections.abc import MutableMapping
from typing import Any, Final

from psycopg import AsyncConnection, BaseConnection
from psycopg.pq import ConnStatus

from fencerow.db.prepared import PreparedStatements
from fencerow.db.watchdog import Watched
from fencerow.db.wire import ConnectionWire

HELD_S: Final = (
    60.0  # at most, then the pool sees it again: it knows how old one may become, and how many are idle
)


class HeldConnection:
    """One connection with its wire, and watched while an answer is due."""

    __slots__ = ("_ear", "_used_at", "connection", "prepared", "since", "used_at", "watched", "wire")

    def __init__(
        self,
        connection: AsyncConnection[Any],
        prepared: PreparedStatements | None,
        watched: Watched,
        used_at: MutableMapping[BaseConnection[Any], float],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`watched` is begun, and ended and closed with it: a lock for each statement would cost more than its wait.

        `used_at`: where it is noted when it was used last.
        """
        self.connection = connection
        self.prepared = prepared
        self.wire = ConnectionWire(connection.pgconn, watched, loop)
        self.watched = watched
        self.since = self.used_at = time.monotonic()
        self._used_at = used_at
        self._ear = select.poll()
        self._ear.register(watched.descriptor, select.POLLIN)

    @property
    def is_readable(self) -> bool:
        """Whether there is something to read, or it was closed by the other end. Never waits."""
        return bool(self._ear.poll(0))

    def let_go(self) -> AsyncConnection[Any]:
        """The connection, for whoever waits by the driver's own ways."""
        self.wire.let_go()
        self._used_at[self.connection] = self.used_at
        self.watched.end()
        self.watched.close()
        return self.connection


class AtHand:
    """The connections of one pool that are at hand. Used in its event loop only."""

    def __init__(self) -> None:
        self.waiting = 0  # how many wait for one of the pool: what is free next goes there
        self.begun: set[HeldConnection] = set()  # those whose answer calls somebody who has no task
        self._idle: list[HeldConnection] = []
        self._behind: list[HeldConnection] = []  # of those: a wake-up alone is not answered yet
        self.is_over = False  # none is kept from now on
        self._drained_at = -math.inf

    def take(self) -> HeldConnection | None:
        """The one that was used last."""
        return self._idle.pop() if self._idle else None

    def take_behind(self) -> HeldConnection | None:
        """One of whose last message the wake-up alone is not answered yet: what is sent there now goes behind it."""
        if self.waiting or not self._behind or self.is_over:
            return None
        held = self._behind[-1]
        return None if held.connection.closed or self._is_old(held) else self._behind.pop()

    def leave_behind(self, held: HeldConnection) -> None:
        """It is in use for a wake-up alone, until `come_behind`."""
        self._behind.append(held)

    def come_behind(self, held: HeldConnection) -> bool:
        """Its wake-up is answered: whether nobody has sent something behind it, who ends its use."""
        if held not in self._behind:
            return False
        self._behind.remove(held)
        return True

    def keep(self, held: HeldConnection, *, is_fit: bool) -> bool:
        """It is in use no more: whether it stays at hand, else it goes back to the pool."""
        held.watched.rest()
        held.used_at = time.monotonic()
        is_closed = held.wire.pgconn.status == ConnStatus.BAD
        if self.is_over or self.waiting or not is_fit or is_closed or self._is_old(held):
            return False
        self._idle.append(held)
        return True

    def _is_old(self, held: HeldConnection) -> bool:
        return held.since <= self._drained_at or held.used_at - held.since > HELD_S

    def drain(self) -> list[AsyncConnection[Any]]:
        """None that is at hand or in use now stays so: close those that are, for whoever takes the next."""
        self._drained_at = time.monotonic()
        drained = self.taken_back(before=math.inf)
        for each in drained:
            each.pgconn.finish()
        return drained

    def taken_back(self, *, before: float) -> list[AsyncConnection[Any]]:
        """Those that nobody has used since then."""
        old = [each for each in self._idle if each.used_at <= before]
        self._idle = [each for each in self._idle if each.used_at > before]
        return [each.let_go() for each in old]

    def drop(self, *, tell: bool) -> None:
        """Close all of them, and keep none from now on.

        `tell`: whoever began something hears that it was cancelled. Else the event loop does not run: nobody can hear.
        """
        self.is_over = True
        self.drain()
        for held in tuple(self.begun):
            held.wire.give_up(tell=tell)
            if not tell:
                held.let_go()
