"""What can go wrong when the user's own databases are migrated (75x) and backfilled (76x)."""

from __future__ import annotations

from fencerow.db.errors import exits
from fencerow.db.errors.base import FencerowError


class MigrationFailed(FencerowError):
    """A migration raised. In a transaction nothing of it stays; outside of one, the message says what to expect."""

    code = "FR-750"


class InvalidMigrations(FencerowError):
    """The folder of migrations, or the migrator itself, cannot work as declared. Nothing ran on any shard."""

    code = "FR-751"
    exit_code = exits.REFUSED


class MigrationEdited(FencerowError):
    """A migration that ran has another text now. Restore it, and write the change as a new migration."""

    code = "FR-752"


class MigrationMissing(FencerowError):
    """The ledger has a migration whose file is missing, although files with higher numbers are there."""

    code = "FR-753"


class MigrationLate(FencerowError):
    """A migration that never ran has a lower number than one that did. Renumber it, or allow `out_of_order`."""

    code = "FR-754"


class LedgerUnreadable(FencerowError):
    """Fencerow cannot tell which migrations a shard has, so nothing was done there. Such a shard never counts
    as empty."""

    code = "FR-755"


class LedgerMissing(FencerowError):
    """A shard has tables but no ledger. Say with a baseline which migrations it has already."""

    code = "FR-756"


class ShardUnreachable(FencerowError):
    """A shard gave no connection, or it broke. Migrations that ran stay; run again when the shard is back."""

    code = "FR-757"
    repeat = "yes"


class ShardBusy(FencerowError):
    """Another migrator, or a long transaction, held what was needed all the time. Run it again later."""

    code = "FR-758"
    repeat = "yes"


class RevertRefused(FencerowError):
    """A migration cannot be taken back: it has no down part, or the target is not below what ran. Nothing changed."""

    code = "FR-759"


class UnknownShard(FencerowError):
    """No shard of that name was declared."""

    code = "FR-760"
    exit_code = exits.REFUSED


class InvalidBackfill(FencerowError):
    """A backfill cannot work as declared, or is known under that name with another table or key. Nothing was stored."""

    code = "FR-761"


class UnknownBackfill(FencerowError):
    """No backfill of that name was ever started in this database."""

    code = "FR-762"


class BackfillRunning(FencerowError):
    """The backfill runs, so its record cannot be removed. Pause it first."""

    code = "FR-763"


class RangeFailed(FencerowError):
    """One range of a backfill failed as often as it may; its lane stopped there. Correct the cause and resume."""

    code = "FR-764"
    retryable = False  # as an attempt's failure: `resume` makes a new job
