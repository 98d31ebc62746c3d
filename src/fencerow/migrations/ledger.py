"""The ledger of a shard: which migrations ran there. It lies in the shard itself, under a name of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from fencerow.db.locks import lock_number
from fencerow.db.queries import IDENTIFIER, Queries, load
from fencerow.db.run import Rows, Steps, execute
from fencerow.migrations.errors import InvalidMigrations, LedgerMissing, LedgerUnreadable

COLUMNS = (
    "version", "name", "checksum", "state", "holder", "attempt", "lease_until", "noted_at", "noted_by",
)  # fmt: skip
STATES = ("applied", "started", "reverting")


@dataclass(frozen=True, slots=True)
class Noted:
    """One line of the ledger. `lease_left_s` is there while a migration that needs no transaction is under way."""

    version: int
    name: str
    checksum: str
    state: str
    attempt: int
    lease_left_s: float | None

    @property
    def whole(self) -> bool:
        """Whether it ran to its end, and was not begun to be taken back."""
        return self.state == "applied"

    def __str__(self) -> str:
        return f"{self.version:04d}_{self.name}"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where the ledger is: a table, on PostgreSQL perhaps in a schema that it names."""

    schema: str | None
    table: str

    @staticmethod
    def of(name: str) -> Ledger:
        """From `table` or `schema.table`.

        Raises:
            InvalidMigrations: it would need quoting.
        """
        schema, dot, table = name.rpartition(".")
        if not all(IDENTIFIER.fullmatch(part) for part in ([schema, table] if dot else [table])):
            raise InvalidMigrations(
                f"the ledger's name {ascii(name)[:80]} cannot be used",
                "lower-case letters, digits and underscores are expected, at most 49, perhaps after a schema and a dot",
                "choose a plainer name",
            )
        return Ledger(schema if dot else None, table)

    @property
    def lock(self) -> int:
        """The number under which migrators of this ledger meet, whether or not they name its schema."""
        return lock_number("migrator", self.table)

    def written(self, dialect: str) -> str:
        """The table as the dialect writes it. A file has no schemas."""
        if self.schema is None or dialect == "sqlite":
            return f'"{self.table}"'
        return f'"{self.schema}"."{self.table}"'

    def queries(self, dialect: str) -> Queries:
        """The statements on it."""
        return _queries(self, dialect)


def read(ledger: Ledger, dialect: str) -> Steps[list[Noted] | None]:
    """What the ledger says; None when there is none.

    Raises:
        LedgerUnreadable: there is something of that name, but no ledger of ours, or a line that says nothing.
    """
    # pragma_table_info takes a name, to_regclass what stands in a statement.
    name = ledger.table if dialect == "sqlite" else ledger.written(dialect)
    columns = [str(row[0]) for row in (yield from execute("ledger_columns", ledger=name))]
    if not columns:
        return None
    if missing := [column for column in COLUMNS if column not in columns]:
        raise LedgerUnreadable(
            f"{ledger.written(dialect)} is no ledger of a migrator: it has no {', '.join(missing)}",
            "nobody can tell which migrations ran here, so none is run",
            "give the migrator another `ledger`, or find out what changed this table",
        )
    return _noted((yield from execute("read_ledger")), ledger.written(dialect))


def make(ledger: Ledger, dialect: str, *, baseline: int | None) -> Steps[None]:
    """Make the ledger of a database in which none is.

    Raises:
        LedgerMissing: there are tables, so somebody ran something, and no baseline says what.
    """
    place = f'"{ledger.schema}"' if ledger.schema is not None and dialect == "postgres" else None
    strangers = [str(row[0]) for row in (yield from execute("strangers", place=place))]
    if strangers and baseline is None:
        raise missing_ledger(ledger.written(dialect), strangers)
    yield from execute("make_ledger")


def missing_ledger(name: str, strangers: Sequence[str]) -> LedgerMissing:
    return LedgerMissing(
        f"there are tables ({', '.join(strangers)}) but no ledger {name}",
        "nobody can guess which migrations this database has already",
        "say so once with a baseline: the number of the last migration that it has, or 0 for none",
    )


def _noted(rows: Rows, name: str) -> list[Noted]:
    found = []
    for version, migration, checksum, state, attempt, left_s in rows:
        if (
            not isinstance(version, int)
            or not isinstance(attempt, int)
            or state not in STATES
            or not checksum
        ):
            raise LedgerUnreadable(
                f"{name} has a line that says nothing: version {ascii(version)[:40]}, state {ascii(state)[:40]}",
                "nobody can tell which migrations ran here, so none is run",
                "find out who wrote it, and correct it by hand",
            )
        left = left_s if isinstance(left_s, int | float) else None
        found.append(Noted(version, str(migration), str(checksum), state, attempt, left))
    return found


@lru_cache(maxsize=64)
def _queries(ledger: Ledger, dialect: str) -> Queries:
    return load("fencerow.migrations", dialect, dialect, lambda _: ledger.written(dialect))
