"""Which migrations are left to run, from the files and the ledger: decided before anything is touched, and pure."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.migrations.errors import MigrationEdited, MigrationLate, MigrationMissing, RevertRefused
from fencerow.migrations.folder import ShardMigration
from fencerow.migrations.ledger import Noted


def left_to_run(
    migrations: Sequence[ShardMigration], noted: Sequence[Noted], *, out_of_order: bool, to: int | None = None
) -> list[ShardMigration]:
    """The migrations that are missing, in order, up to `to`; one that was begun outside a transaction comes first.

    A ledger that is ahead of the files is fine as long as none of them is missing below it: newer code was here.

    Raises:
        MigrationEdited, MigrationMissing: what ran is not what the files say.
        MigrationLate: a migration would run after one with a higher number.
    """
    _compare(migrations, noted)
    known = {line.version: line for line in noted}
    begun = [
        migration
        for migration in migrations
        if migration.version in known and not known[migration.version].whole
    ]
    missing = [migration for migration in migrations if migration.version not in known]
    newest = max((line.version for line in noted), default=0)
    late = [migration for migration in missing if migration.version < newest]
    if late and not out_of_order:
        raise MigrationLate(
            f"migration {late[0].up.file.name} never ran, but {newest:04d} did",
            "migrations run in the order of their numbers, so that every shard gets the same schema",
            f"renumber it above {newest}, or allow it with out_of_order=True",
        )
    return [migration for migration in [*begun, *missing] if to is None or migration.version <= to]


def left_to_revert(
    migrations: Sequence[ShardMigration], noted: Sequence[Noted], *, to: int
) -> list[ShardMigration]:
    """The migrations above `to` that ran, the newest first.

    Raises:
        MigrationEdited, MigrationMissing: what ran is not what the files say.
        RevertRefused: one of them has no way back. Looked at before the first is taken back.
    """
    _compare(migrations, noted)
    by_version = {migration.version: migration for migration in migrations}
    found = []
    for line in sorted(noted, key=lambda line: line.version, reverse=True):
        if line.version <= to:
            continue
        migration = by_version.get(line.version)
        if migration is None or migration.down is None:
            raise RevertRefused(
                f"migration {line} cannot be taken back",
                "it has no down part" if migration else "its file is not here",
                f"write {line}.down.sql, or choose a target of {line.version} or more",
            )
        found.append(migration)
    return found


def ahead(migrations: Sequence[ShardMigration], noted: Sequence[Noted]) -> list[Noted]:
    """What newer code ran here."""
    known = {migration.version for migration in migrations}
    return [line for line in noted if line.version not in known]


def _compare(migrations: Sequence[ShardMigration], noted: Sequence[Noted]) -> None:
    by_version = {migration.version: migration for migration in migrations}
    newest = max(by_version, default=0)
    for line in noted:
        migration = by_version.get(line.version)
        if migration is None:
            if line.version < newest or not line.whole:
                raise MigrationMissing(
                    f"migration {line} ran here, but its file is gone",
                    "without the file nobody can check what ran",
                    "put the file back; to undo a migration, write a new one",
                )
        elif line.whole and line.checksum != migration.checksum:
            raise MigrationEdited(
                f"{migration.up.file.name} was edited after it ran: it ran with checksum {line.checksum[:12]}",
                f"the file has {migration.checksum[:12]} now",
                "put the old text back, and write the change as a new migration",
            )
