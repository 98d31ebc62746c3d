"""Statements that are planned once for a connection and from then on only executed: where that is safe, and until when.

A claim of one job costs the server more to plan than to execute. But a pooler in transaction mode gives each
transaction another server connection, where what was prepared is not known, or is known under the same name as
something else. And a plan that was made while a table was empty reads all of it when it has grown.

So it is done only where a connection leads to the server itself: there the process id that the connection was told at
its start is the one that its statements run in, while a pooler must tell one of its own, by which it is asked to
cancel. On such a connection alone we set four settings for the session, in the very statement that compares the ids:
plans are kept, they walk indexes in their order whatever a table holds when they are made, and none is compiled.

Where a pooler is not noticed all the same, names that nobody else uses turn what was meant for a prepared statement
into an error that has changed nothing; the statement is repeated, and nothing is prepared from then on.

Where nothing is kept, the server plans each statement by the statistics of the moment. So those that walk an index
bring settings along that end with their transaction: `IN_ORDER`, and `postgres_session.py` says how they are sent.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from psycopg import AsyncConnection, BaseConnection, Connection, Error
from psycopg.errors import DuplicatePreparedStatement, FeatureNotSupported, InvalidSqlStatementName

from fencerow.db.prepared import PreparedStatements

log = logging.getLogger("fencerow.db")

# Says nothing, and sets nothing, where the ids differ. All four may be set by any role. Where a table has many pages
# and few rows, the server takes a walk in the order of an index for one through many pages: without the third a claim
# that was planned while its queue was idle gathers all that is queued since and sorts it, each time. Without the
# last, what cannot be had from an index looks so dear that the server would compile it.
MEET = """
SELECT set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false),
       set_config('seq_page_cost', '0', false),
       set_config('jit', 'off', false)
WHERE pg_backend_pid() = %s
"""
# The same for one transaction, where a session is not ours to set: through a pooler.
IN_ORDER = """
SELECT set_config('enable_seqscan', 'off', true),
       set_config('seq_page_cost', '0', true),
       set_config('jit', 'off', true)
"""
# The name is not known there; somebody else has it; what it returns is not what it was (a migration changed it).
NOT_AS_PREPARED = (InvalidSqlStatementName, DuplicatePreparedStatement, FeatureNotSupported)
ONLY_WHEN_ASKED = 1_000_000_000  # executions after which the driver would prepare a statement by itself


class Preparing:
    """Whether the connections of one engine may prepare, decided for each when it is new.

    What is not `wanted` any more is taken back from a connection when it is used next: on one that was met earlier
    nothing is prepared either, once that was given up.
    """

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self._kept: WeakKeyDictionary[BaseConnection[Any], PreparedStatements] = WeakKeyDictionary()
        self._set: WeakSet[BaseConnection[Any]] = WeakSet()  # whose sessions have our settings
        self._has_settings = True  # of these names; another server than PostgreSQL may not

    def wants_order(self, connection: BaseConnection[Any]) -> bool:
        """Whether a transaction there must say by itself how its statements are planned: its session has not been
        told, or is another's."""
        return self._has_settings and not (self.wanted and connection in self._set)

    def of(self, connection: AsyncConnection[Any]) -> PreparedStatements | None:
        """What this connection has prepared, if it may."""
        return self._kept.get(connection) if self.wanted else None

    def meet(self, connection: Connection[Any]) -> None:
        """Let a new connection prepare if it leads to the server itself. One short statement."""
        if self.wanted:
            try:
                answer = connection.execute(MEET, (connection.info.backend_pid,)).fetchone()
            except Error as error:
                self._not_met(connection, error)
            else:
                if answer is not None:
                    self._set.add(connection)
                    _allow(connection)

    async def ameet(self, connection: AsyncConnection[Any]) -> None:
        """`meet` in this event loop."""
        if self.wanted:
            try:
                cursor = await connection.execute(MEET, (connection.info.backend_pid,))
                answer = await cursor.fetchone()
            except Error as error:
                self._not_met(connection, error)
            else:
                if answer is not None:
                    self._set.add(connection)
                    self._kept[connection] = PreparedStatements(secrets.randbits(60))

    def failed(self, error: Error) -> bool:
        """Whether a prepared statement was not what it was prepared as. It changed nothing; repeat it.

        Nothing is prepared any more, on any connection of this engine.
        """
        if not isinstance(error, NOT_AS_PREPARED):
            return False
        if self.wanted:
            self.wanted = False
            log.warning(
                "a prepared statement was not there or did not fit (%s); nothing is prepared from now on. If a "
                "pooler stands before PostgreSQL, set prepared_statements to off",
                str(error).strip().splitlines()[:1],
            )
        return True

    def _not_met(self, connection: BaseConnection[Any], error: Error) -> None:
        """A server that does not know the question is used without preparing; a broken connection is not used.

        Raises:
            psycopg.Error: the connection is broken.
        """
        if connection.closed or connection.broken:
            raise error
        self._has_settings = False
        log.info("this server prepares nothing for us: %s", error)


def _allow(connection: BaseConnection[Any]) -> None:
    """Prepare from now on what is asked to be.

    The driver numbers its names from 0, so that behind a pooler which was not noticed another client's statement would
    answer to ours. A number of our own cannot be met by chance; a driver that does not take one prepares nothing.
    """
    names = connection._prepared  # pyright: ignore[reportPrivateUsage]
    if not hasattr(names, "_prepared_idx"):
        return
    names._prepared_idx = secrets.randbits(60)  # pyright: ignore[reportPrivateUsage]
    connection.prepare_threshold = ONLY_WHEN_ASKED
