"""Our own schema: applied in order, each part of a migration with its note in one transaction, under a tried lock.

Many starters at once are safe: the lock is taken before the ledger is read. A schema that is newer
than this code is worked with only if it says so (`compatible_from`), never taken for an older one.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencerow.core.errors import Busy, SchemaMissing, SchemaTampered, SchemaTooNew, SchemaTooOld
from fencerow.core.model.ids import new_id
from fencerow.core.schema.building import LEASE_S, Building, broken, indexes_of
from fencerow.core.schema.rooms import known_migrations
from fencerow.db import locks
from fencerow.db.engine import Engine
from fencerow.db.migration import INDEX, Migration
from fencerow.db.run import Rows, Steps, as_int, execute, operation
from fencerow.db.steady import steady

if TYPE_CHECKING:
    from fencerow.core.schema.build_lease import Tell

log = logging.getLogger("fencerow")

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


Advance = Migration | Prepared | Building | bool | None


@operation(repeatable=True, writes="schema", patience_s=math.inf)
def apply_next(
    known: Sequence[Migration],
    *,
    ledger: str,
    lock: int,
    actor: str | None,
    to: int | None = None,
    holder: str = "",
    pressing: bool = False,
) -> Steps[Advance]:
    """Apply the next part of the first migration that is missing; note it with it.

    None when no migration is missing, of those up to `to` if that is said, False when another migrator is at work.
    A part that is built concurrently is not run but taken for building by this `holder`. `pressing`: locks were not to
    be had, so a vacuum of the server's own is asked to give way.

    Raises:
        SchemaTooNew, SchemaTampered: see `judged`. Nothing was changed.
    """
    if not (yield from locks.try_lock(lock)):
        return False
    applied = yield from _ledger_or_new(ledger)
    missing = judged(applied, known)
    if not missing or (to is not None and missing[0].version > to):
        return None
    migration = missing[0]
    parts, is_held = yield from _under_way(migration)
    if is_held:
        return False
    if pressing and applied:
        yield from execute("make_vacuum_yield")
    return (yield from _apply_part(migration, parts, holder=holder, actor=actor))


def _apply_part(migration: Migration, number: int, *, holder: str, actor: str | None) -> Steps[Advance]:
    if number < len(migration.parts):
        if migration.parts[number].concurrently:
            return (yield from _take(migration, number, holder))
        yield from execute(migration.part(number))
    if number + 1 < len(migration.parts):
        yield from execute(
            "note_part", version=migration.version, checksum=migration.checksum, parts=number + 1
        )
        return Prepared(migration.version, number + 1)
    yield from execute(
        "note_migration",
        version=migration.version,
        name=migration.name,
        checksum=migration.checksum,
        compatible_from=migration.compatible_from,
        actor=actor,
    )
    return migration


@operation(repeatable=True, writes="schema")
def take_broken(newest: Migration, *, lock: int, holder: str) -> Steps[Building | bool]:
    """Take the building of indexes that are broken although no migration is missing; False when another is at work."""
    if not (yield from locks.try_lock(lock)):
        return False
    _, is_held = yield from _under_way(newest)
    return False if is_held else (yield from _take(newest, None, holder))


def _take(migration: Migration, number: int | None, holder: str) -> Steps[Building | bool]:
    rows = yield from execute(
        "take_work",
        version=migration.version,
        checksum=migration.checksum,
        parts=len(migration.parts) if number is None else number,
        holder=holder,
        lease_s=LEASE_S,
    )
    return Building(migration, number, holder, as_int(rows[0][0])) if rows else False


def _ledger_or_new(name: str) -> Steps[list[Applied]]:
    """What the ledger says; made with what belongs to it where there is none."""
    if not (yield from execute("relation_exists", name=name))[0][0]:
        if not (yield from execute("schema_exists", ledger=name))[0][0]:
            yield from execute("make_schema")
        yield from execute("make_ledger")
        yield from execute("make_work")
        return []
    if not (yield from execute("relation_exists", name=work_name(name)))[0][0]:
        yield from execute("make_work")
    return _ledger((yield from execute("read_ledger")))


def _under_way(migration: Migration) -> Steps[tuple[int, bool]]:
    """How many parts of a migration are committed, and whether somebody builds indexes now, be it of another."""
    rows = yield from execute("read_work")
    if not rows:
        return 0, False
    version, checksum, parts, is_held = rows[0]
    same = (version, checksum) == (migration.version, migration.checksum)
    return as_int(parts) if same else 0, bool(is_held)


@operation(repeatable=True, writes="")
def ledger(name: str) -> Steps[list[Applied]]:
    """The migrations that were applied; none when there is no ledger."""
    if not (yield from execute("relation_exists", name=name))[0][0]:
        return []
    return _ledger((yield from execute("read_ledger")))


def migrate(
    engine: Engine,
    *,
    actor: str | None = None,
    wait_s: float = WAIT_S,
    to: int | None = None,
    tell: Tell = log.info,
    on_applied: Callable[[Migration], object] = lambda _: None,
) -> list[Migration]:
    """Bring the schema up to what this code knows, or to a number; returns the migrations that this call applied.

    `on_applied` is called with each of them when it is committed.

    Safe with many starters at once, and while workers of an earlier schema go on: a lock that they wait behind
    is asked for briefly and again, and indexes of tables that are in use are built beside them, however long that
    takes; `tell` hears how far it is. A crash leaves whole parts of migrations; run it again, and it goes on.

    Raises:
        SchemaTooNew: a newer Fencerow has been here. Upgrade this process.
        SchemaTampered: an applied migration is not what we know under that number.
        Busy: another migrator was at work all the time, or long transactions held the tables.
    """
    known, name = known_migrations(engine.dialect), ledger_name(engine)
    lock, holder = lock_number(name), new_id()
    done: list[Migration] = []
    deadline = time.monotonic() + wait_s
    pressing = False
    while True:
        sent = steady()
        try:
            got = engine.run(
                apply_next(
                    known, ledger=name, lock=lock, actor=actor, to=to, holder=holder, pressing=pressing
                )
            )
        except Busy:
            if time.monotonic() > deadline:
                raise
            pressing = engine.traits.has_server
            time.sleep(0.5)  # others get through meanwhile
            continue
        pressing = False
        if isinstance(got, Migration):
            done.append(got)
            on_applied(got)
        elif isinstance(got, Building):
            from fencerow.core.schema.build_lease import build_kept  # who builds no index never loads it

            assert got.number is not None
            part = engine.queries[got.migration.part(got.number)]
            build_kept(engine, name, indexes_of(part), got, sent, tell)
            deadline = time.monotonic() + wait_s
        elif got is None:
            if to is None and engine.traits.has_server:
                mend(engine, known, lock=lock, holder=holder, tell=tell)
            return done
        elif got is False:
            _wait(deadline, wait_s)


def mend(engine: Engine, known: Sequence[Migration], *, lock: int, holder: str, tell: Tell) -> None:
    """Build our indexes again that are not whole though no migration is missing: somebody began them by hand."""
    name = ledger_name(engine)
    indexes = engine.run(broken(name, index_names(known)))
    if not indexes:
        return
    sent = steady()
    taken = engine.run(take_broken(known[-1], lock=lock, holder=holder))
    if isinstance(taken, Building):
        from fencerow.core.schema.build_lease import build_kept

        build_kept(engine, name, indexes, taken, sent, tell)


def broken_indexes(engine: Engine) -> list[str]:
    """The names of our indexes that are there and not whole: `migrate` builds them again."""
    if not engine.traits.has_server:
        return []
    found = engine.run(broken(ledger_name(engine), index_names(known_migrations(engine.dialect))))
    return [index.name for index in found]


def _wait(deadline: float, wait_s: float) -> None:
    if time.monotonic() > deadline:
        raise Busy(
            "another process is migrating this schema",
            f"it took longer than {wait_s:g} s",
            "try again later",
        )
    # In no transaction: a waiter inside one would hang against CREATE INDEX CONCURRENTLY.
    time.sleep(0.05)


def refuse_foreign(engine: Engine) -> None:
    """Refuse a SQLite file without our tables before anything of ours has opened it and left traces in it.

    Raises:
        SchemaMissing: it is somebody else's, or was never migrated.
    """
    from fencerow.db.probe_sqlite import is_foreign_sqlite
    from fencerow.db.sqlite import SqliteEngine

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


def ledger_name(engine: Engine) -> str:
    """The ledger's table as the dialect writes it."""
    return engine.queries.name_of("schema_migrations")


def work_name(ledger: str) -> str:
    """The table beside the ledger that says which migration is under way."""
    return ledger.replace("schema_migrations", "schema_work")


def index_names(known: Sequence[Migration]) -> list[str]:
    """The indexes that migrations make."""
    return [name for each in known for name in INDEX.findall(each.text)]


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
