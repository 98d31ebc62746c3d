"""A user's own tables in the arenas: the chunks of sources, and the effects of what is to be done once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg

from fencerow.core.store import store
from fencerow.db.queries import Queries
from fencerow.db.run import Operation, Steps, execute_composed
from fencerow.guards.replace.user_table import Rows, UserTable
from fencerow_proof.arena.race import Story

TABLES = {"chunks": "(source text, text text)", "effects": "(who text)"}


def make(arena: Any) -> None:
    """Make them, held like ours in the held mode."""
    if arena.mode == "sqlite":
        with sqlite3.connect(arena.url) as lite:
            for name, columns in TABLES.items():
                lite.execute(f"CREATE TABLE IF NOT EXISTS fencerow_{name} {columns}")
        lite.close()
        return
    with psycopg.connect(arena.url, autocommit=True) as connection:
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TABLE IF NOT EXISTS fencerow.{name} {columns}")
            if arena.mode == "held":
                connection.execute(
                    f"CREATE OR REPLACE TRIGGER race_hold BEFORE INSERT OR UPDATE OR DELETE ON fencerow.{name} "
                    "FOR EACH STATEMENT EXECUTE FUNCTION fencerow.hold_statement()"
                )


class Users:
    """What scenarios do with them, in the dialect of one arena."""

    def __init__(self, mode: str) -> None:
        self.dialect = "sqlite" if mode == "sqlite" else "postgres"
        self.queries: Queries = store.sqlite_queries() if mode == "sqlite" else store.postgres_queries()
        self.table = UserTable("fencerow_chunks" if mode == "sqlite" else "fencerow.chunks", "source")

    def clear(self) -> Operation[Any]:
        def steps() -> Steps[None]:
            for name in TABLES:
                yield from self._sql(f"DELETE FROM fencerow.{name}")

        return Operation("clear the user's tables", steps)

    def effect(self, who: str) -> Operation[Any]:
        return Operation(
            "effect", lambda: self._sql("INSERT INTO fencerow.effects VALUES (:who)", who=who), alone=True
        )

    def effects(self, story: Story) -> list[str]:
        return story.run(self.read_effects())

    def read_effects(self) -> Operation[list[str]]:
        def steps() -> Steps[list[str]]:
            rows = yield from self._sql("SELECT who FROM fencerow.effects")
            return [row["who"] for row in rows]

        return Operation("read the effects", steps, alone=True, writes="")

    def read(self) -> Operation[list[str]]:
        """What one statement of a reader sees of the source."""

        def steps() -> Steps[list[str]]:
            rows = yield from self._sql("SELECT text FROM fencerow.chunks ORDER BY text")
            return [row["text"] for row in rows]

        return Operation("read", steps, alone=True, writes="")

    def rows(self, *texts: str) -> Rows:
        return Rows.of(self.table, "faq", [{"text": text} for text in texts], frozenset())

    def replaced(self, *texts: str) -> Steps[None]:
        return self.table.replaced(self.queries, "faq", self.rows(*texts))

    def removed(self) -> Steps[None]:
        yield from execute_composed(self.table.removal(self.queries), {"source": "faq"})

    def inserted(self, *texts: str) -> Steps[None]:
        rows = self.rows(*texts)
        query = self.table.insertion(self.queries, rows.columns, len(rows.values))
        values = {
            f"v{row}_{at}": value for row, each in enumerate(rows.values) for at, value in enumerate(each)
        }
        yield from execute_composed(query, values)

    def columns(self) -> Steps[frozenset[str]]:
        """Not asked for in races: it depends on nobody, and would only make more orders."""
        yield from ()
        return frozenset()

    def _sql(self, text: str, **params: Any) -> Steps[list[dict[str, Any]]]:
        return (yield from execute_composed(self.queries.composed("users_own", text), params))


def made(arenas: Any) -> Iterator[None]:
    """The tables in every arena."""
    for arena in arenas.values():
        make(arena)
    yield
