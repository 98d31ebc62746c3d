"""A database before its first migration, and a second step to come between two."""

from __future__ import annotations

from dataclasses import replace

from fencerow.core.store import store
from fencerow.db.migration import Migration
from fencerow.db.queries import Queries, Query
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.arena.invariants import History
from fencerow_proof.arena.postgres import PostgresArena
from fencerow_proof.arena.race import Scenario

LEDGER = '"fencerow".schema_migrations'
# A second step, so that a migrator can come between two.
SECOND = Migration(9000, "schema_9000_more", "", 1, "checksum of the second")
# Without what is built concurrently: that is in no transaction, and its race is one of its own.
KNOWN = [
    replace(each, text=each.text.replace("-- built concurrently:", "-- next transaction:"))
    for each in [*store.known_migrations("postgres"), SECOND]
]


def with_second(queries: Queries) -> Queries:
    more = Query(SECOND.name, ('CREATE TABLE "fencerow".more (id integer)',), ())
    return Queries("postgres", {**queries, SECOND.name: more})


class Bare(PostgresArena):
    """An arena before the first migration: there is nothing to look at yet."""

    def __init__(self, server: PostgresServer, database: str, queries: Queries) -> None:
        self._owner = server.connect(database)
        super().__init__(server.conninfo(database, "racer"), queries)

    def close(self) -> None:
        super().close()
        self._owner.close()

    def prepare(self) -> None:
        pass

    def fresh(self, scenario: Scenario) -> None:
        self._owner.execute("SET client_min_messages = error")
        self._owner.execute("DROP SCHEMA fencerow CASCADE")
        self._owner.execute("CREATE SCHEMA fencerow AUTHORIZATION racer")

    def look(self, history: History, *, moves: int = 1) -> None:
        pass

    def invariants(self) -> list[str]:
        return []
