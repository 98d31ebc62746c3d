"""Moves the time that an engine's statements see: leases run out and delays pass without waiting for them."""

from __future__ import annotations

from typing import Protocol

import psycopg
from psycopg import sql

from fencerow.core.db.engine import Engine
from fencerow.core.db.postgres import PostgresEngine
from fencerow.core.db.sqlite import SqliteEngine


class DatabaseClock(Protocol):
    """The clock of one database, as far as a test may touch it."""

    def advance(self, seconds: float) -> None:
        """Let this much time pass at once; a negative number goes back, as a server's clock may."""

    def close(self) -> None:
        """Let time go as it does."""


class SqliteClock:
    """Moves the clock of one engine, and of the keepers made from it: SQLite has none of its own."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    def advance(self, seconds: float) -> None:
        self._engine.clock.offset_us += round(seconds * 1_000_000)

    def close(self) -> None:
        self._engine.clock.offset_us = 0


class PostgresClock:
    """Replaces the one function that decides ownership, so every client of the schema sees the same moved time.

    The role of `conninfo` must own the schema. Never for a database that others use.
    """

    def __init__(self, conninfo: str, schema: str = "fencerow") -> None:
        self._conninfo = conninfo
        self._schema = schema
        self._offset_s = 0.0

    def advance(self, seconds: float) -> None:
        self._offset_s += seconds
        self._replace()

    def close(self) -> None:
        self._offset_s = 0.0
        self._replace()

    def _replace(self) -> None:
        # The offset stands in the function's text: a table would change the plans of the statements under test.
        body = f"SELECT clock_timestamp() + INTERVAL '{self._offset_s:.6f} seconds'"
        statement = sql.SQL(
            "CREATE OR REPLACE FUNCTION {}.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS {}"
        ).format(sql.Identifier(self._schema), sql.Literal(body))
        with psycopg.connect(self._conninfo, autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement)


def clock_of(engine: Engine) -> DatabaseClock:
    """The clock of an engine's database."""
    if isinstance(engine, SqliteEngine):
        return SqliteClock(engine)
    assert isinstance(engine, PostgresEngine), f"no clock is known for {type(engine).__name__}"
    return PostgresClock(engine.conninfo, engine.schema)
