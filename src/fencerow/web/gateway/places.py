"""The connections of a server, and who of them goes first when there are too many.

Callers whose request is whole keep theirs. The others, who wait between two requests or whose request is still coming,
make room for newcomers, those who have waited for longest first. So a caller with a whole request is served however
many others keep a connection for nothing.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from typing import Final, Protocol

from fencerow.web.gateway.cuts import Cuts
from fencerow.web.settings import WebSettings

SETTLED_S: Final = 1.0  # who began to send a request less long ago keeps the place
REFUSED_MAX: Final = 100  # newcomers without a place who are told so; more are cut off without a word


class Stage(enum.Enum):
    """What a connection is at."""

    IDLE = "idle"  # between two requests
    COMING = "coming"  # a request is to come, or is not whole yet
    SERVED = "served"  # its request is whole


class Connection(Protocol):
    """What may be cut off."""

    def cut(self) -> None: ...


class Places:
    """So many connections as `most`, of one event loop. Of each it knows since when it has been at its stage."""

    def __init__(self, settings: WebSettings, most: int) -> None:
        self.settings = settings
        self.cuts = Cuts()
        self._most = most
        self._stages: dict[Connection, Stage] = {}
        self._waiting: dict[Stage, dict[Connection, float]] = {Stage.IDLE: {}, Stage.COMING: {}}  # since when
        self._unread: dict[Connection, tuple[float, int]] = {}  # since when, how many bytes
        self._unread_bytes = 0
        self._refused: set[Connection] = set()

    def enter(self, connection: Connection) -> bool:
        """A newcomer: whether there is a place. One without a place is to be told so, or is cut off here."""
        if len(self._stages) < self._most or self._make_room():
            self._stages[connection] = Stage.SERVED
            return True
        self.cuts.note(f"all {self._most} connections are in use (`web_connections_max`)", logging.WARNING)
        if len(self._refused) < REFUSED_MAX:
            self._refused.add(connection)
        else:
            connection.cut()
        return False

    def move(self, connection: Connection, stage: Stage) -> None:
        """It is at this stage now. Who stays at one keeps the time when it began."""
        before = self._stages.get(connection)
        if before is None or before is stage:
            return
        self._stages[connection] = stage
        if before is not Stage.SERVED:
            del self._waiting[before][connection]
        if stage is not Stage.SERVED:
            self._waiting[stage][connection] = _now()

    def leave(self, connection: Connection) -> None:
        """It has ended. It may be repeated."""
        self._refused.discard(connection)
        self.read(connection)
        stage = self._stages.pop(connection, Stage.SERVED)
        if stage is not Stage.SERVED:
            del self._waiting[stage][connection]

    def unread(self, connection: Connection, size: int) -> None:
        """So many bytes wait to be read by its caller. Where all hold too many, who has waited for longest is cut."""
        self.read(connection)
        self._unread[connection] = (_now(), size)
        self._unread_bytes += size
        while self._unread_bytes > self.settings.web_unread_bytes_max:
            oldest, (since, _) = next(iter(self._unread.items()))
            if _now() - since < SETTLED_S:
                return
            self._cut(oldest, "answers that nobody reads hold too much (`web_unread_bytes_max`)")

    def read(self, connection: Connection) -> None:
        """Nothing waits there any more."""
        _, size = self._unread.pop(connection, (0.0, 0))
        self._unread_bytes -= size

    def _make_room(self) -> bool:
        """Cut off who has waited for longest, if somebody may be."""
        idle, coming = (next(iter(self._waiting[each].items()), None) for each in (Stage.IDLE, Stage.COMING))
        if idle is not None:
            self._cut(idle[0], "it was idle, and newcomers needed the place (`web_connections_max`)")
        elif coming is not None and _now() - coming[1] >= SETTLED_S:
            self._cut(
                coming[0], "its request still came, and others needed the place (`web_connections_max`)"
            )
        else:
            return False
        return True

    def _cut(self, connection: Connection, why: str) -> None:
        self.cuts.note(why, logging.WARNING)
        self.leave(connection)
        connection.cut()


def _now() -> float:
    return asyncio.get_running_loop().time()
