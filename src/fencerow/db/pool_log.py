"""What psycopg's pool logs about our pools: kept for the error that the caller gets, and out of the user's log.

A pool that cannot connect tries again and again, and logs each try as a warning. The caller then gets one error, which
only knew that no connection came. So the last reason goes into that error, and the lines go to our own logger at
DEBUG. Other pools of the program log as before.
"""

from __future__ import annotations

import logging
from itertools import count
from typing import Any
from weakref import WeakSet

from psycopg import BaseConnection

from fencerow.db.errors import Unavailable
from fencerow.db.probe import reason_of

NAME = "fencerow"

log = logging.getLogger("fencerow.db")
_numbers = count(1)


class OurPools(logging.Filter):
    """On psycopg's logger: takes out the records of our pools, and notes why one could not connect."""

    def __init__(self) -> None:
        super().__init__()
        self._reasons: dict[str, BaseException] = {}
        self._connections = WeakSet[BaseConnection[Any]]()

    def filter(self, record: logging.LogRecord) -> bool:
        given = record.args if isinstance(record.args, tuple) else ()
        about = given[0] if given else ""
        pool = str(about)
        is_one = isinstance(about, BaseConnection)  # a record about one connection does not name its pool
        if not (about in self._connections if is_one else pool.partition("-")[0] == NAME):
            return True
        if len(given) > 1 and isinstance(given[1], BaseException):
            self._reasons[pool] = given[1]
        log.debug("%s", record.getMessage())
        return False

    def reason(self, pool: str) -> BaseException | None:
        """Why this pool could not connect last; None once it could. All who wait meanwhile are told the same."""
        return self._reasons.get(pool)

    def connected(self, pool: str, connection: BaseConnection[Any]) -> None:
        """This pool has made this connection: what stood in its way is over."""
        self._connections.add(connection)
        self._reasons.pop(pool, None)


OURS = OurPools()
logging.getLogger("psycopg.pool").addFilter(OURS)


def pool_name() -> str:
    """A name for one set of pools, by which their records are found."""
    return f"{NAME}-{next(_numbers)}"


def unreachable(pool: str, conninfo: str, waited_s: float) -> Unavailable:
    """The error for who got no connection of this pool in time, with the reason of its last try."""
    reason = OURS.reason(pool)
    busy = "all connections of the pool are in use, or the server does not answer"
    return Unavailable(
        f"PostgreSQL gave no connection within {waited_s:g} s",
        busy if reason is None else reason_of(conninfo, reason),
        "check the URL with `fencerow doctor`; nothing was stored",
    )


def closed_meanwhile() -> Unavailable:
    """The error for who waits in an event loop whose connections were given back while it did not run."""
    return Unavailable(
        "the app or client was closed while this waited for a connection",
        "a close gives back what event loops that do not run at that moment have opened",
        "close it when nothing waits any more, by `aclose()` in its event loop; nothing was stored",
    )
