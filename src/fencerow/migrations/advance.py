"""The operations of a migrator: one migration forward or back, each with its line of the ledger in one transaction.

The lock is taken before the ledger is read, in a statement of its own. Whoever does not get it waits outside
of any transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from fencerow.db.queries import Query
from fencerow.db.run import Param, Steps, as_int, execute, operation
from fencerow.migrations.direct import Code, Raw
from fencerow.migrations.errors import MigrationFailed
from fencerow.migrations.folder import Script, ShardMigration
from fencerow.migrations.judge import left_to_revert, left_to_run
from fencerow.migrations.ledger import Ledger, Noted, make, read


@dataclass(frozen=True, slots=True)
class Aim:
    """What one migrator wants of one shard. `holder` is fresh for each run."""

    ledger: Ledger
    dialect: str
    migrations: Sequence[ShardMigration]
    holder: str
    actor: str | None = None
    lease_s: float = 30.0
    lock_wait_s: float = 5.0
    out_of_order: bool = False
    baseline: int | None = None


class WaitReason(Enum):
    """Why a migration cannot be taken now."""

    LOCK = "another migrator is at work"
    LEASE = "another migrator runs a migration outside of a transaction"
    SERVER = "the server still runs a statement of a migrator that is gone"


@dataclass(frozen=True, slots=True)
class NotedMigration:
    """A migration that ran, or was taken back, and is noted."""

    migration: ShardMigration


@dataclass(frozen=True, slots=True)
class OutsideTransaction:
    """A migration outside of a transaction, taken by this holder in this attempt. `resumed`: it was begun before."""

    migration: ShardMigration
    attempt: int
    doing: str
    resumed: bool

    @property
    def script(self) -> Script:
        script = self.migration.up if self.doing == "started" else self.migration.down
        assert script is not None
        return script


Advance = NotedMigration | OutsideTransaction | WaitReason | None


@operation(writes="schema")
def apply_next(aim: Aim, *, to: int | None = None) -> Steps[Advance]:
    """Run the next missing migration up to number `to`; None when there is none.

    Raises:
        MigrationEdited, MigrationMissing, MigrationLate, LedgerUnreadable, LedgerMissing: nothing was changed.
    """
    noted = yield from _locked(aim, create=True)
    if isinstance(noted, WaitReason):
        return noted
    left = left_to_run(aim.migrations, noted, out_of_order=aim.out_of_order, to=to)
    if not left:
        return None
    migration, begun = left[0], _begun(noted, left[0])
    if begun and (yield from _under_way(aim, migration)):
        return WaitReason.SERVER
    if not migration.up.in_transaction:
        return (yield from _take_apart(aim, migration, "started", resumed=begun))
    if begun:  # outside of a transaction, and its file was rewritten since
        yield from execute("forget_migrated", version=migration.version)
    yield from _run_inside(migration.up)
    yield from execute(
        "note_migrated",
        version=migration.version,
        name=migration.name,
        checksum=migration.checksum,
        actor=aim.actor,
    )
    return NotedMigration(migration)


@operation(writes="schema")
def revert_next(aim: Aim, to: int) -> Steps[Advance]:
    """Take the newest migration above number `to` back; None when there is none.

    Raises:
        RevertRefused: some migration above `to` has no way back. Looked at before the first is taken back.
        MigrationEdited, MigrationMissing, LedgerUnreadable: nothing was changed.
    """
    noted = yield from _locked(aim, create=False)
    if isinstance(noted, WaitReason):
        return noted
    left = left_to_revert(aim.migrations, noted, to=to)
    if not left:
        return None
    migration = left[0]
    assert migration.down is not None
    begun = _begun(noted, migration)
    if begun and (yield from _under_way(aim, migration)):
        return WaitReason.SERVER
    if not migration.down.in_transaction:
        return (yield from _take_apart(aim, migration, "reverting", resumed=begun))
    yield from _run_inside(migration.down)
    yield from execute("forget_migrated", version=migration.version)
    return NotedMigration(migration)


@operation(writes="")
def look(ledger: Ledger, dialect: str) -> Steps[tuple[list[Noted] | None, list[str]]]:
    """What the ledger says, and where there is none, the tables that are there all the same. Changes nothing."""
    noted = yield from read(ledger, dialect)
    if noted is not None:
        return noted, []
    place = f'"{ledger.schema}"' if ledger.schema is not None and dialect == "postgres" else None
    return None, [str(row[0]) for row in (yield from execute("strangers", place=place))]


@operation(alone=True, repeatable=True, writes="schema")
def renew(aim: Aim, apart: OutsideTransaction, lease_s: float) -> Steps[bool]:
    """Move the lease on, or with 0 give it up; false when it is lost."""
    rows = yield from execute(
        "renew_apart",
        version=apart.migration.version,
        holder=aim.holder,
        attempt=apart.attempt,
        lease_s=lease_s,
    )
    return bool(rows)


@operation(alone=True, writes="schema")
def finish(aim: Aim, apart: OutsideTransaction) -> Steps[bool]:
    """Note that a migration outside of a transaction is whole, or gone; false when somebody else has taken it over."""
    of: dict[str, Param] = {
        "version": apart.migration.version,
        "holder": aim.holder,
        "attempt": apart.attempt,
    }
    if apart.doing == "started":
        return bool((yield from execute("finish_apart", of)))
    return bool((yield from execute("finish_revert", of)))


def mark_of(ledger: Ledger, migration: ShardMigration) -> str:
    """What the statements of a migration outside of a transaction begin with."""
    return f"/* fencerow {ledger.table} {migration.version} */"


def session_of(ledger: Ledger, migration: ShardMigration) -> str:
    """The application name of the connection on which a migration runs outside of a transaction.

    The statements of a function of the user's bear no mark; this they do. Older migrators look for it.
    """
    return f"fencerow step {ledger.lock & (2**64 - 1):016x} {migration.version}"


def _locked(aim: Aim, *, create: bool) -> Steps[list[Noted] | WaitReason]:
    """The ledger, read under the lock."""
    yield from execute("be_impatient", lock_wait_ms=f"{max(1, round(aim.lock_wait_s * 1000))}")
    if not (yield from execute("try_ledger_lock", lock=aim.ledger.lock))[0][0]:
        return WaitReason.LOCK
    noted = yield from read(aim.ledger, aim.dialect)
    if noted is None:
        if not create:
            return []
        yield from make(aim.ledger, aim.dialect, baseline=aim.baseline)
        for migration in aim.migrations:
            if aim.baseline is not None and migration.version <= aim.baseline:
                yield from execute(
                    "note_migrated",
                    version=migration.version,
                    name=migration.name,
                    checksum=migration.checksum,
                    actor=aim.actor,
                )
        noted = (yield from read(aim.ledger, aim.dialect)) or []
    for line in noted:
        if line.lease_left_s is not None and line.lease_left_s > 0:
            return WaitReason.LEASE
    return noted


def _begun(noted: Sequence[Noted], migration: ShardMigration) -> bool:
    return any(line.version == migration.version and not line.whole for line in noted)


def _under_way(aim: Aim, migration: ShardMigration) -> Steps[bool]:
    """Whether the server still works for somebody who began this migration and may be gone."""
    rows = yield from execute(
        "statements_under_way", mark=mark_of(aim.ledger, migration), session=session_of(aim.ledger, migration)
    )
    return bool(rows[0][0])


def _take_apart(aim: Aim, migration: ShardMigration, doing: str, *, resumed: bool) -> Steps[Advance]:
    rows = yield from execute(
        "take_apart",
        version=migration.version,
        name=migration.name,
        checksum=migration.checksum,
        doing=doing,
        holder=aim.holder,
        lease_s=aim.lease_s,
        actor=aim.actor,
    )
    return OutsideTransaction(migration, as_int(rows[0][0]), doing, resumed) if rows else WaitReason.LEASE


def _run_inside(script: Script) -> Steps[None]:
    before = (yield from execute("this_transaction"))[0][0]
    if script.function is not None:
        yield Code("migration", {}, source=script.file.name, function=script.function)
    for piece in script.pieces:
        query = Query("migration", (piece.text,), ())
        yield Raw("migration", {}, query, source=script.file.name, line=piece.line)
    yield from execute("forget_settings")
    if (yield from execute("this_transaction"))[0][0] != before:
        raise MigrationFailed(
            f"{script.file.name} ended the transaction that it ran in",
            "what it committed stays, but the ledger does not know it: this migration is half done",
            "undo its effects by hand; leave COMMIT and ROLLBACK to the migrator",
        )
