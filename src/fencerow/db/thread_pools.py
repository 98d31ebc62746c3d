"""Connections to PostgreSQL for threads, and what those of event loops have in common with them.

There are two pools of each kind. Handlers that hold a transaction each would otherwise leave no connection for
what they say inside it, nor for claims and outcomes, and all would wait for each other.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import psycopg
from psycopg import BaseConnection, Connection, IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import ReadOnlySqlTransaction
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from fencerow.db import cancelling
from fencerow.db.connections import shares
from fencerow.db.errors import ReadOnly, Unavailable
from fencerow.db.forks import MadeAnew
from fencerow.db.pool_log import OURS, pool_name, unreachable
from fencerow.db.pool_wait import obtained
from fencerow.db.preparing import Preparing
from fencerow.db.watchdog import Watchdog, Watched, is_readable

# After a failover we may still be connected to what is a standby now. The next connection goes where the URL leads.
REFUSES_WRITES = (ReadOnlySqlTransaction, ReadOnly)
RECONNECT_S = 1.0  # how long a pool tries by itself before it waits to be asked again
IDLE_S = 5.0  # longer than a busy or a polling process leaves a connection alone


class ThreadPools(MadeAnew):
    """The pools of a process as far as threads go: at most `pool_max` connections, opened when they are needed."""

    def __init__(
        self,
        conninfo: str,
        *,
        pool_max: int,
        connect_timeout_s: float,
        statement_timeout_s: float,
        prepares: bool = False,
    ) -> None:
        self.preparing = Preparing(prepares)
        self._conninfo = conninfo
        self._name = pool_name()
        self._hosts = hosts(conninfo)
        self._pool_max, self._user_max = shares(pool_max)
        self._connect_timeout_s = connect_timeout_s
        self._statement_timeout_s = statement_timeout_s
        self._opened: WeakSet[ConnectionPool[Any] | AsyncConnectionPool[Any]] = WeakSet()
        self._check_process()

    def _forget(self) -> None:
        for each in self._opened:
            # A parent's, and ended with it: here it would wait 5 s for each of its threads, which are not here.
            each._closed = True  # pyright: ignore[reportPrivateUsage]
        self._opened = WeakSet()
        self._lock = threading.Lock()
        self._pools: dict[bool, ConnectionPool[Connection[Any]]] = {}  # ours, and (True) the users'
        self._watchdog = Watchdog(self._statement_timeout_s)
        # Those that were in use, and when that ended.
        self._used_at: WeakKeyDictionary[BaseConnection[Any], float] = WeakKeyDictionary()
        # Asked to stop: the request may be on its way still, and would strike whatever runs there next.
        self._cancelled: WeakSet[BaseConnection[Any]] = WeakSet()
        self._silent_since = -math.inf  # monotonic: when one was asked that has not answered

    @contextmanager
    def connection(self, *, for_user: bool = False) -> Iterator[Connection[Any]]:
        """A connection for the block.

        Raises:
            Unavailable: none could be had in time.
        """
        pool = self._open_pool(for_user)
        try:
            connection = obtained(pool, self._check if for_user else self._check_ours, self._wait_s(for_user))
        except PoolTimeout as error:
            raise self._unreachable() from error
        # Neither begun nor ended here, unlike in the pool's own block: whoever opens a transaction ends it.
        try:
            if not self.preparing.wanted:
                connection.prepare_threshold = None
            yield connection
        except REFUSES_WRITES:
            connection.close()
            pool.drain()
            raise
        finally:
            self._used_at[connection] = time.monotonic()
            if connection in self._cancelled:
                connection.close()
            pool.putconn(connection)

    def _wait_s(self, for_user: bool) -> float:
        """Others' transactions take what they take; our own statements are short, so a long wait means trouble."""
        return self._statement_timeout_s if for_user else self._connect_timeout_s

    def _open_pool(self, for_user: bool) -> ConnectionPool[Connection[Any]]:
        self._check_process()
        with self._lock:
            if for_user not in self._pools:
                self._pools[for_user] = ConnectionPool(
                    self._conninfo,
                    kwargs={"autocommit": True, "prepare_threshold": None, **self.client_settings()},
                    min_size=0,
                    max_size=self._user_max if for_user else self._pool_max,
                    num_workers=1,
                    open=True,
                    name=self._name,
                    reconnect_timeout=RECONNECT_S,
                    configure=self._connected,
                )
                self._opened.add(self._pools[for_user])
            return self._pools[for_user]

    def watched(self, connection: Connection[Any], *, limit_s: float | None = None) -> Watched:
        """Watch a connection for a block: waits for the server that are too long end as a broken connection."""

        def cancel() -> None:
            self._cancelled.add(connection)
            cancelling.cancel(connection)

        return self._watchdog.watch(connection.fileno(), cancel, limit_s=limit_s)

    def watched_socket(self, fileno: int) -> Watched:
        """`watched` for the socket of somebody else's connection."""
        return self._watchdog.watch(fileno, None)

    def _check(self, connection: Connection[Any]) -> None:
        """Before a connection of the pool is used; an error makes us take another."""
        if self._is_doubtful(connection):
            with self._asking(connection):
                ConnectionPool.check_connection(connection)

    def _check_ours(self, connection: Connection[Any]) -> None:
        """`_check` where our own statements run; those of users meet a session as the server makes it."""
        if connection in self._used_at:
            self._check(connection)
            return
        with self._watched_check(connection) as watched:
            watched.busy()
            self.preparing.meet(connection)

    def _is_doubtful(self, connection: BaseConnection[Any]) -> bool:
        """Whether a connection must answer before it is used. A closed one is readable, and so is a last word.

        What nobody closed and yet is gone (a firewall that forgot it) shows in silence only: whoever was idle for a
        while is asked, and whoever is as old as one that we gave up.
        """
        used_at = self._used_at.get(connection)
        if used_at is None:  # just made
            return False
        idle_s = time.monotonic() - used_at
        return idle_s > IDLE_S or used_at <= self._watchdog.gave_up_at or is_readable(connection.fileno())

    @contextmanager
    def _asking(self, connection: BaseConnection[Any]) -> Iterator[None]:
        """For a question to one that is doubtful. It is put to none that nobody has used since another one was asked
        and stayed silent: one after the other they would use up the wait of whoever needs a connection.

        Raises:
            psycopg.Error: it does not answer, or is not asked.
        """
        if self._used_at[connection] <= self._silent_since:
            raise psycopg.OperationalError("not asked: one beside it was silent")
        asked_at = time.monotonic()
        try:
            with self._watched_check(connection) as watched:
                watched.busy()
                yield
        except psycopg.Error:
            if self._watchdog.gave_up_at >= asked_at:
                self._silent_since = asked_at
            raise

    def _watched_check(self, connection: BaseConnection[Any]) -> Watched:
        """The question is nothing: there is nothing to cancel, and time for another connection must be left."""
        limit_s = min(self._connect_timeout_s, self._statement_timeout_s) / 3
        return self._watchdog.watch(connection.fileno(), None, limit_s=limit_s)

    def client_settings(self) -> dict[str, Any]:
        """Time limits that the client keeps by itself; a server setting would not survive a pooler.

        And the encoding: a role, a database or the environment may say another, which cannot hold all texts.
        """
        return {
            "connect_timeout": max(2, round(self._connect_timeout_s / self._hosts)),  # for each host in turn
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": round(self._statement_timeout_s * 1000),
            "application_name": "fencerow",
            "client_encoding": "UTF8",
        }

    def _connected(self, connection: Connection[Any]) -> None:
        """READ COMMITTED is said with every BEGIN, whatever the role's default is: a guard looks in a later statement
        than its lock. It costs no round trip and leaves nothing behind in the session.
        """
        OURS.connected(self._name, connection)
        connection.isolation_level = IsolationLevel.READ_COMMITTED

    def _unreachable(self) -> Unavailable:
        return unreachable(self._name, self._conninfo, self._connect_timeout_s)


def hosts(conninfo: str) -> int:
    """How many hosts a URL names. One that libpq cannot read has one; connecting will say what is wrong."""
    try:
        found = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        return 1
    return len(str(found.get("host") or found.get("hostaddr") or "").split(","))
