"""A lent asyncpg connection, from a pool or not."""

from __future__ import annotations

from typing import Any

import asyncpg

from fencerow.db.adapters.frame import (
    ConnectionStanding,
    SentText,
    busy,
    closed,
    lost,
    named,
)
from fencerow.db.adapters.lent_postgres import LentPostgres, is_lost, server_fault, typed
from fencerow.db.errors import FencerowError, UnusableConnection
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import numbered
from fencerow.db.run import Rows

LOST = (
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.ConnectionFailureError,
    asyncpg.AdminShutdownError,
    OSError,
)


class LentAsyncpg(LentPostgres):
    """Rows come as asyncpg's own records and parameters go as plain values, whatever codecs the connection has.

    A failed transaction shows only when something is sent: the savepoint is refused, and nothing follows it.
    """

    kind = "asyncpg connection"

    def __init__(self, connection: Any, engine: PostgresEngine) -> None:
        self._connection = connection
        self.queries, self.known = engine.queries, engine.known

    def driver(self) -> object:
        return getattr(self._connection, "_con", self._connection)  # a pool hands out a new proxy each time

    def standing(self) -> ConnectionStanding:
        try:
            if self._connection.is_closed():
                raise closed(self.kind)
            return (
                ConnectionStanding.OPEN if self._connection.is_in_transaction() else ConnectionStanding.ALONE
            )
        except asyncpg.InterfaceError as error:  # given back to its pool
            raise _unusable(error) from error

    async def send(self, sent: SentText) -> Rows:
        if sent.command:
            await self._connection.execute(sent.text)  # one round trip, and nothing is prepared
            return []
        written = sent.text if sent.users else typed(sent.text, sent.parameters, sent.params)
        values = [sent.params[name] for name in sent.parameters]
        records = await self._connection.fetch(
            numbered(written, sent.parameters), *values, record_class=asyncpg.Record
        )
        return named(sent, list(records[0].keys()) if records else [], [tuple(row) for row in records])

    def fault(self, error: BaseException, standing: ConnectionStanding) -> FencerowError | None:
        if isinstance(error, LOST) or is_lost(error):
            return lost(standing, error)
        if isinstance(error, asyncpg.InterfaceError):
            text = str(error)
            if "another operation is in progress" in text:
                return busy(self.kind)
            return lost(standing, error) if self._connection.is_closed() else _unusable(error)
        return server_fault(error, self.kind)


def _unusable(error: BaseException) -> UnusableConnection:
    return UnusableConnection(
        "this asyncpg connection cannot be used", str(error), "pass one that is open and idle"
    )
