"""Moves the time that an engine's statements see: leases run out and delays pass without waiting for them."""

from __future__ import annotations

import re
from typing import Protocol

import psycopg
from psycopg import sql

from fencerow.db.engine import Engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine

BODY = """
SELECT function.prosrc
FROM pg_catalog.pg_proc AS function
JOIN pg_catalog.pg_namespace AS space ON space.oid = function.pronamespace
WHERE space.nspname = %s AND function.proname = 'now'
"""
OFFSET = re.compile(r"INTERVAL '(-?[0-9.]+) seconds'")


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

    How far it is moved stands in the database alone, so several of these for one database go on from each other, as
    several do for one engine on SQLite. The role of `conninfo` must own the schema. Never for a database that others
    use.
    """

    def __init__(self, conninfo: str, schema: str = "fencerow") -> None:
        self._conninfo = conninfo
        self._schema = schema

    def advance(self, seconds: float) -> None:
        with self._connected() as connection:
            row = connection.execute(BODY, [self._schema]).fetchone()
            found = OFFSET.search(str(row[0])) if row else None
            self._replace(connection, (float(found[1]) if found else 0.0) + seconds)

    def close(self) -> None:
        with self._connected() as connection:
            self._replace(connection, 0.0)

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self._conninfo, autocommit=True, connect_timeout=10)

    def _replace(self, connection: psycopg.Connection[tuple[object, ...]], offset_s: float) -> None:
        # The offset stands in the function's text: a table would change the plans of the statements under test.
        body = "SELECT clock_timestamp()" + (f" + INTERVAL '{offset_s:.6f} seconds'" if offset_s else "")
        statement = sql.SQL(
            "CREATE OR REPLACE FUNCTION {}.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS {}"
        ).format(sql.Identifier(self._schema), sql.Literal(body))
        connection.execute(statement)


def clock_of(engine: Engine) -> DatabaseClock:
    """The clock of an engine's database."""
    if isinstance(engine, SqliteEngine):
        return SqliteClock(engine)
    assert isinstance(engine, PostgresEngine), f"no clock is known for {type(engine).__name__}"
    return PostgresClock(engine.conninfo, engine.schema)
