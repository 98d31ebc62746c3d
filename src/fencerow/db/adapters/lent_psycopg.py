"""A lent psycopg 3 connection, sync or async."""

from __future__ import annotations

from typing import Any, cast

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.adapt import AdaptersMap
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.array import ListDumper
from psycopg.types.string import StrDumperUnknown, TextLoader

from fencerow.db.adapters.frame import (
    ConnectionStanding,
    Frame,
    SentText,
    busy,
    closed,
    failed,
    lost,
    named,
)
from fencerow.db.adapters.lent_postgres import LentPostgres, server_fault
from fencerow.db.errors import FencerowError, ReadOnly
from fencerow.db.faults import connection_lost
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import pyformat
from fencerow.db.run import Operation, Rows

BEGUN_BY_DRIVER = Frame((), (), ("ROLLBACK",))


class LentPsycopg(LentPostgres):
    """Uses a cursor class and a row factory of our own; the connection's stay as they are."""

    kind = "psycopg connection"

    def __init__(self, connection: Connection[Any] | AsyncConnection[Any], engine: PostgresEngine) -> None:
        self._connection = connection
        self.queries, self.known = engine.queries, engine.known

    def driver(self) -> object:
        return self._connection

    def standing(self) -> ConnectionStanding:
        connection = self._connection
        if connection.closed:
            raise closed(self.kind)
        if connection.info.pipeline_status != PipelineStatus.OFF:
            raise busy(self.kind)  # the rows that say what happened would not be there yet
        match connection.info.transaction_status:
            case TransactionStatus.INERROR:
                raise failed(self.kind)
            case TransactionStatus.INTRANS:
                return ConnectionStanding.OPEN
            case TransactionStatus.IDLE:
                return self._idle()
            case _:
                raise busy(self.kind)

    def _idle(self) -> ConnectionStanding:
        if self._connection.autocommit:
            return ConnectionStanding.ALONE
        return ConnectionStanding.FRESH

    def frame(self, operation: Operation[Any], standing: ConnectionStanding) -> Frame:
        if operation.writes and standing is ConnectionStanding.FRESH and self._connection.read_only:
            raise ReadOnly(
                "this psycopg connection was made read-only", "read_only=True", "pass one that may write"
            )
        return BEGUN_BY_DRIVER if standing is ConnectionStanding.FRESH else super().frame(operation, standing)

    def fault(self, error: BaseException, standing: ConnectionStanding) -> FencerowError | None:
        if connection_lost(error):
            return lost(standing, error)
        return server_fault(error, self.kind)


class LentSyncPsycopg(LentPsycopg):
    def send(self, sent: SentText) -> Rows:
        connection = cast("Connection[Any]", self._connection)
        with Cursor(connection, row_factory=tuple_row) as cursor:
            _plain(cursor.adapters, sent)
            # Never prepared: whether a pooler stands in between is the user's knowledge, not ours.
            cursor.execute(cast(Any, pyformat(sent.text)), sent.params, prepare=False)
            return _read(sent, cursor, cursor.fetchall() if cursor.description else [])


class LentAsyncPsycopg(LentPsycopg):
    async def send(self, sent: SentText) -> Rows:
        connection = cast("AsyncConnection[Any]", self._connection)
        async with AsyncCursor(connection, row_factory=tuple_row) as cursor:
            _plain(cursor.adapters, sent)
            await cursor.execute(cast(Any, pyformat(sent.text)), sent.params, prepare=False)
            return _read(sent, cursor, await cursor.fetchall() if cursor.description else [])


def _read(sent: SentText, cursor: Cursor[Any] | AsyncCursor[Any], rows: Rows) -> Rows:
    return named(sent, [column.name for column in cursor.description or ()], rows)


def _plain(adapters: AdaptersMap, sent: SentText) -> None:
    """Give one cursor of ours psycopg's own ways with the types that our statements use.

    Users register others, such as list as jsonb or uuid as something of theirs; those stay on the connection,
    and hold for what is the user's.
    """
    if sent.users is not None:
        return
    adapters.register_dumper(str, StrDumperUnknown)
    adapters.register_dumper(list, ListDumper)
    for name in ("text", "uuid"):
        adapters.register_loader(name, TextLoader)
