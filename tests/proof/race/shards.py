"""A user's own database before its first migration, for races of migrators: on PostgreSQL, held too, and in a file."""

from __future__ import annotations

from pathlib import Path

from fencerow.core.store import store
from fencerow.db.queries import Queries, Query, qualified
from fencerow.db.run import Operation, Rows, Statement
from fencerow.migrations.advance import Aim
from fencerow.migrations.folder import Script, ShardMigration
from fencerow.migrations.ledger import Ledger
from fencerow.migrations.text import pieces
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.arena.held import PREPARE, TRIGGER
from fencerow_proof.arena.invariants import History
from fencerow_proof.arena.postgres import PostgresArena
from fencerow_proof.arena.race import Scenario
from fencerow_proof.arena.sqlite import SqliteArena

LEDGER = Ledger.of("public.schema_ledger")
TABLES = ("schema_ledger", "trail")


def migration(version: int, up: str, down: str, *, apart: bool = False) -> ShardMigration:
    def script(text: str) -> Script:
        return Script(Path(f"{version:04d}_step.sql"), not apart, tuple(pieces(text, "postgres")))

    return ShardMigration(version, "migration", f"checksum {version}", script(up), script(down))


def trailing(version: int) -> ShardMigration:
    """A migration that leaves its number, and would leave it twice if it ran twice."""
    return migration(
        version, f"INSERT INTO trail VALUES ({version})", f"DELETE FROM trail WHERE version = {version}"
    )


MIGRATIONS = [
    migration(1, "CREATE TABLE trail (version integer); INSERT INTO trail VALUES (1)", "DROP TABLE trail"),
    trailing(2),
    trailing(3),
]


def aim(dialect: str, holder: str, migrations: list[ShardMigration] | None = None) -> Aim:
    return Aim(LEDGER, dialect, MIGRATIONS if migrations is None else migrations, holder)


def asked(text: str) -> Operation[Rows]:
    """A look, or a hand on the scales, by a statement of the test's own."""

    def steps() -> object:
        return (yield Statement("asked", {}, Query("asked", (text,), ())))

    return Operation("asked", steps)  # type: ignore[arg-type]


class ShardArena(PostgresArena):
    """On PostgreSQL. Held: statements that change the ledger stop between their snapshot and their change.

    The database goes with it: a process that plays other files between two tests of one makes it a second time.
    """

    def __init__(self, server: PostgresServer, database: str, *, held: bool) -> None:
        self._server, self._database = server, database
        server.create_role_and_schema(role="racer", database=database)
        self._owner = server.connect(database)
        self._owner.execute("GRANT ALL ON SCHEMA public TO racer")
        self._owner.execute("SET client_min_messages = error")
        super().__init__(server.conninfo(database, "racer"), LEDGER.queries("postgres"), held=held)

    def close(self) -> None:
        super().close()
        self._owner.close()
        self._server.drop_database(self._database)

    def prepare(self) -> None:
        self._control.run("SET client_min_messages = error")
        self._control.run(self._text(PREPARE))

    def clear(self) -> None:
        for table in TABLES:
            self._owner.execute(f"DROP TABLE IF EXISTS {table}".encode())
        if self._held:
            (make,) = self.queries["make_ledger"].statements
            self._control.run(make)
            self._control.run(self._text(TRIGGER.replace("ON fencerow.{table}", "ON public.schema_ledger")))

    def look(self, history: History, *, moves: int = 1) -> None:
        pass

    def invariants(self) -> list[str]:
        return []


class ShardFile(SqliteArena):
    """In a file, where whole transactions follow each other."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, store.sqlite_queries().joined(LEDGER.queries("sqlite")))

    def fresh(self, scenario: Scenario) -> None:
        self.clear()

    def clear(self) -> None:
        if self._played is not self.queries:
            self._engine.close()
            self._played, self._engine = self.queries, self._open()
        for table in TABLES:
            self.run(asked(f"DROP TABLE IF EXISTS {table}"))

    def look(self, history: History, *, moves: int = 1) -> None:
        pass

    def invariants(self) -> list[str]:
        return []


def cut(queries: Queries, name: str, old: str, new: str) -> Queries:
    """A guard taken out; tables are written as in the files."""
    return queries.altered(name, qualified(old, lambda _: LEDGER.written(queries.dialect)), new)
