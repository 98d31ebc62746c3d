"""A migrated PostgreSQL database that tests use one after the other: a new one for each costs more than most of them.

Between two tests its rows are deleted, its counters begin anew and its clock is set back. What a test sees is as new,
but for plans that its connections remember and pages that are empty. One whose tables, functions or rows from
migrations a test has changed is dropped, and the next test gets a new one. A test in an event loop has an engine of
its own there: what that opened is closed with its loop.
"""

from __future__ import annotations

from typing import LiteralString

import psycopg
from psycopg import sql

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer

PATIENCE = "10s"  # a test that left a transaction open would let us wait for ever
TABLES: LiteralString = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'fencerow'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    ORDER BY relname
"""
NOW = "clock_timestamp()"
CLOCK: LiteralString = "SELECT pg_get_functiondef('fencerow.now()'::regprocedure)"
COUNTED: LiteralString = """
    SELECT setval(seqrelid::regclass, seqstart, seqrelid = 'fencerow.repeats_until'::regclass)  -- that one has a value
    FROM pg_sequence WHERE pg_sequence_last_value(seqrelid) IS NOT NULL
"""
# Not xmin: the collector of garbage writes to these tables, too.
MADE: LiteralString = """
    SELECT sum(hashtextextended(each, 0)) FROM (
        SELECT concat_ws(' ', 'class', oid, relfilenode, relowner, relacl, reloptions, relchecks) AS each
        FROM pg_class WHERE oid >= 16384 AND relkind <> 't'
        UNION ALL SELECT concat_ws(' ', 'column', attrelid, attname, atttypid, attnotnull, attisdropped, attacl)
        FROM pg_attribute WHERE attrelid >= 16384 AND attnum > 0
        UNION ALL SELECT concat_ws(' ', 'constraint', oid, conname) FROM pg_constraint WHERE oid >= 16384
        UNION ALL SELECT concat_ws(' ', 'trigger', oid, tgenabled) FROM pg_trigger WHERE oid >= 16384
        UNION ALL SELECT concat_ws(' ', 'function', oid, prosrc, proacl, provolatile) FROM pg_proc WHERE oid >= 16384
        UNION ALL SELECT concat_ws(' ', 'schema', oid, nspacl) FROM pg_namespace
        UNION ALL SELECT concat_ws(' ', 'setting', setrole, setconfig) FROM pg_db_role_setting
        WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS everything
"""


class EmptiedDatabase:
    """One such database with its engine, and the clock of both (a `DatabaseClock`)."""

    def __init__(self, server: PostgresServer, name: str, role: str) -> None:
        self.name = name
        self.engine = PostgresEngine(server.conninfo(name, role), store.postgres_queries())
        self._queries = self.engine.queries
        self._connection = server.connect(name)  # one for all tests: to connect costs more than to empty
        self._connection.execute("SET session_replication_role = replica")  # no triggers
        self._connection.execute(sql.SQL("SET statement_timeout = {}").format(PATIENCE))
        tables = [sql.Identifier("fencerow", str(row[0])) for row in self._connection.execute(TABLES)]
        self._kept = [table for table in tables if self._has_rows(table)]
        deletes = [sql.SQL("DELETE FROM {}").format(table) for table in tables if table not in self._kept]
        self._empties = sql.SQL("; ").join(deletes)
        self._clock, self._offset_s = str(self._one(sql.SQL(CLOCK))), 0.0
        assert NOW in self._clock
        self._made = self._looks()

    def advance(self, seconds: float) -> None:
        """As `PostgresClock` does it, which connects for it."""
        self._offset_s += seconds
        moved = self._clock.replace(NOW, f"{NOW} + INTERVAL '{self._offset_s:.6f} seconds'")
        self._connection.execute(moved.encode())

    def close(self) -> None:
        """Let time go as it does."""
        self._offset_s = 0.0
        self._connection.execute(self._clock.encode())

    def end(self) -> None:
        """Nobody is connected afterwards, so it can be dropped."""
        self.engine.close()
        self._connection.close()

    def is_as_new(self) -> bool:
        """Empty it. False where a test has changed more than rows, or does not let go of them."""
        self.engine.queries, self._offset_s = self._queries, 0.0
        try:
            self._connection.execute(self._empties)
            self._connection.execute(COUNTED, prepare=True)
            if self._one(sql.SQL(CLOCK)) != self._clock:
                self._connection.execute(self._clock.encode())
            return self._looks() == self._made
        except psycopg.Error:
            return False

    def _looks(self) -> tuple[object, ...]:
        rows = sql.SQL("SELECT md5(string_agg({row}::text, ',' ORDER BY {row}::text)) FROM {table} AS {row}")
        row = sql.Identifier("kept")
        return (
            self._one(sql.SQL(MADE)),
            *(self._one(rows.format(table=table, row=row)) for table in self._kept),
        )

    def _has_rows(self, table: sql.Identifier) -> bool:
        return bool(self._one(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(table)))

    def _one(self, query: sql.SQL | sql.Composed) -> object:
        found = self._connection.execute(query, prepare=True).fetchone()
        assert found is not None
        return found[0]
