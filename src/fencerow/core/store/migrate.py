"""Our own schema: applied in order, each migration and its ledger row in one transaction, under a lock that is tried.

Many starters at once are safe: the lock is taken before the ledger is read. A schema that is newer
than this code is worked with only if it says so (`compatible_from`), never taken for an older one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.core.db import locks
from fencerow.core.db.engine import Engine
from fencerow.core.db.queries import Migration
from fencerow.core.db.run import Rows, Steps, as_int, execute, operation
from fencerow.core.errors import Busy, SchemaMissing, SchemaTampered, SchemaTooNew, SchemaTooOld
from fencerow.core.store.tables import known_migrations

WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Applied:
    """One migration as the ledger has it."""

    version: int
    name: str
    checksum: str
    compatible_from: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A part of a migration, but not its last, is committed."""

    version: int
    parts: int


@operation(repeatable=True, writes="schema", patience_s=math.inf)
def apply_next(
    known: Sequence[Migration],
    *,
    ledger: str,
    lock: int,
    actor: str | None,
    prepared: Prepared | None = None,
    to: int | None = None,
) -> Steps[Migration | Prepared | bool | None]:
    """Apply the first migration that is missing, or the part of it that comes after those `prepared`.

    None when no migration is missing, of those up to `to` if that is said, False when another migrator holds the lock.

    Raises:
        SchemaTooNew, SchemaTampered: see `judged`. Nothing was changed.
    """
    got = yield from execute("try_migration_lock", lock=lock)
    if not got[0][0]:
        return False
    applied: list[Applied] = []
    if (yield from execute("ledger_exists", ledger=ledger))[0][0]:
        applied = _ledger((yield from execute("read_ledger")))
    else:
        if not (yield from execute("schema_exists", ledger=ledger))[0][0]:
            yield from execute("make_schema")
        yield from execute("make_ledger")
    missing = judged(applied, known)
    if not missing or (to is not None and missing[0].version > to):
        return None
    migration = missing[0]
    part = prepared.parts if prepared is not None and prepared.version == migration.version else 0
    yield from execute(migration.part(part))
    if part + 1 < len(migration.parts):
        return Prepared(migration.version, part + 1)
    yield from execute(
        "note_migration",
        version=migration.version,
        name=migration.name,
        checksum=migration.checksum,
        compatible_from=migration.compatible_from,
        actor=actor,
    )
    return migration


@operation(repeatable=True, writes="")
def ledger(name: str) -> Steps[list[Applied]]:
    """The migrations that were applied; none when there is no ledger."""
    if not (yield from execute("ledger_exists", ledger=name))[0][0]:
        return []
    return _ledger((yield from execute("read_ledger")))


def migrate(
    engine: Engine, *, actor: str | None = None, wait_s: float = WAIT_S, to: int | None = None
) -> list[Migration]:
    """Bring the schema up to what this code knows, or to a number; returns the migrations that this call applied.

    Safe with many starters at once, and while workers of an earlier schema go on: a lock that they wait behind
    is asked for briefly and again. A crash leaves whole migrations and repeatable parts of one; run it again.

    Raises:
        SchemaTooNew: a newer Fencerow has been here. Upgrade this process.
        SchemaTampered: an applied migration is not what we know under that number.
        Busy: another migrator held its lock all the time, or long transactions the tables'.
    """
    known = known_migrations(engine.dialect)
    name = ledger_name(engine)
    done: list[Migration] = []
    prepared: Prepared | None = None
    deadline = time.monotonic() + wait_s
    while True:
        following = apply_next(
            known, ledger=name, lock=lock_number(name), actor=actor, prepared=prepared, to=to
        )
        try:
            migration = engine.run(following)
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)  # others get through meanwhile
            continue
        if isinstance(migration, Migration):
            done.append(migration)
        elif isinstance(migration, Prepared):
            prepared = migration
        elif migration is None:
            return done
        elif time.monotonic() > deadline:
            raise Busy(
                "another process is migrating this schema",
                f"it took longer than {wait_s:g} s",
                "try again later",
            )
        else:
            time.sleep(
                0.05
            )  # in no transaction: a waiter inside one would hang against CREATE INDEX CONCURRENTLY


def refuse_foreign(engine: Engine) -> None:
    """Refuse a SQLite file without our tables before anything of ours has opened it and left traces in it.

    Raises:
        SchemaMissing: it is somebody else's, or was never migrated.
    """
    from fencerow.core.db.probe import is_foreign_sqlite  # with the drivers
    from fencerow.core.db.sqlite import SqliteEngine

    if isinstance(engine, SqliteEngine) and is_foreign_sqlite(engine.path, ledger_name(engine)):
        raise _missing()


def check_schema(engine: Engine) -> list[Applied]:
    """Refuse to work on a schema that is missing, too old, too new or not ours; returns the ledger.

    Raises:
        SchemaMissing, SchemaTooOld: run `fencerow migrate`.
        SchemaTooNew, SchemaTampered: as in `migrate`.
    """
    known = known_migrations(engine.dialect)
    applied = engine.run(ledger(ledger_name(engine)))
    if not applied:
        raise _missing()
    missing = judged(applied, known)
    if missing:
        raise SchemaTooOld(
            f"the schema is at migration {applied[-1].version}",
            f"this Fencerow needs migration {known[-1].version}",
            "run `fencerow migrate`",
        )
    return applied


def judged(applied: Sequence[Applied], known: Sequence[Migration]) -> list[Migration]:
    """The migrations that are missing, after a look at those that were applied."""
    by_version = {migration.version: migration for migration in known}
    newest = known[-1].version
    for row in applied:
        migration = by_version.get(row.version)
        if migration is None and row.compatible_from > newest:
            raise SchemaTooNew(
                f"the schema is at migration {row.version}, which needs code of migration {row.compatible_from}",
                f"this Fencerow knows migrations up to {newest}",
                "upgrade this process",
            )
        if migration is not None and migration.checksum != row.checksum:
            raise SchemaTampered(
                f"migration {row.version} ({row.name}) was applied with checksum {row.checksum[:12]}",
                f"this Fencerow knows it as {migration.checksum[:12]}",
                "find out who changed it; use the Fencerow version that applied it",
            )
    there = {row.version for row in applied}
    return [migration for migration in known if migration.version not in there]


def newest_known(dialect: str) -> int:
    """The number of the newest migration that this code knows."""
    return known_migrations(dialect)[-1].version


def ledger_name(engine: Engine) -> str:
    """The ledger's table as the dialect writes it."""
    return engine.queries["read_ledger"].statements[0].split(" FROM ")[1].split()[0]


def lock_number(name: str) -> int:
    """A 64-bit advisory lock number of our own for one schema: a collision costs time, never an answer."""
    return locks.lock_number("migrate", name)


def _missing() -> SchemaMissing:
    return SchemaMissing(
        "this database has no Fencerow tables",
        "the schema was never migrated, or this is the wrong database",
        "run `fencerow migrate`, or correct the URL",
    )


def _ledger(rows: Rows) -> list[Applied]:
    return [Applied(as_int(row[0]), str(row[1]), str(row[2]), as_int(row[3])) for row in rows]
