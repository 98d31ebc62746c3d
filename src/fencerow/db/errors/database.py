"""What the database, its file or its schema refuses (5xx)."""

from __future__ import annotations

import fencerow.db.errors.exits as exits
from fencerow.db.errors.base import FencerowError


class DatabaseError(FencerowError):
    """The database refused or could not be reached."""

    code = "FR-501"
    exit_code = exits.UNAVAILABLE


class NotPermitted(DatabaseError):
    """The role lacks a privilege, on a table or a function, say, whatever the row. Nothing was stored. Grant it."""

    code = "FR-951"


class RowRefused(DatabaseError):
    """A rule of the database, a trigger or row security, refused a row, or left it out; others it may take. Nothing
    was stored of the job or jobs that were submitted in this call. Correct the job, or the rule."""

    code = "FR-952"
    exit_code = exits.REFUSED


class Unavailable(DatabaseError):
    """There was no connection, or it broke before the commit was sent: nothing was stored. Repeat later."""

    code = "FR-502"
    repeat = "yes"


class OutcomeUnknown(DatabaseError):
    """The connection broke, or the disk failed, while a commit was under way: it may have happened. Look
    first, then repeat.

    `job_ids` are the ids of a submit in doubt: submit again under the same ids, or look them up.
    """

    code = "FR-503"
    repeat = "ask"

    def __init__(self, what: str, why: str = "", fix: str = "", *, job_ids: tuple[str, ...] = ()) -> None:
        super().__init__(what, why, fix)
        self.job_ids = job_ids


class Busy(DatabaseError):
    """The database stayed locked or overloaded beyond the wait that was allowed. Nothing was stored; repeat."""

    code = "FR-504"
    repeat = "yes"


class ReadOnly(DatabaseError):
    """The database or file is read-only (a standby, a full or protected disk). Nothing was stored."""

    code = "FR-505"


class StorageFull(DatabaseError):
    """No space is left on the database's disk. Nothing was stored. Make room and repeat."""

    code = "FR-506"
    repeat = "yes"


class RetryTransaction(DatabaseError):
    """The caller's own transaction must be rolled back and run again (serialization, stale snapshot, deadlock)."""

    code = "FR-507"
    repeat = "yes"


class UnusableConnection(DatabaseError):
    """The connection passed in cannot carry a submit: failed, closed, read-only, in autocommit, of an unknown
    kind, in another encoding than UTF8, or to another database."""

    code = "FR-508"


class OtherDatabase(UnusableConnection):
    """The connection passed in leads to another database than that of the app, where no worker would look."""

    code = "FR-514"


class UnsafeFileSystem(DatabaseError):
    """The SQLite file lies on a network file system, where locks do not hold. Move it or use PostgreSQL."""

    code = "FR-509"
    exit_code = exits.REFUSED


class SchemaMissing(DatabaseError):
    """Fencerow's tables are not there. Run `fencerow migrate`."""

    code = "FR-510"
    exit_code = exits.SCHEMA


class SchemaTooNew(DatabaseError):
    """The database was migrated by a newer Fencerow that this one cannot work with. Upgrade this process."""

    code = "FR-511"
    exit_code = exits.SCHEMA


class SchemaTooOld(DatabaseError):
    """The database misses migrations that this Fencerow needs. Run `fencerow migrate`."""

    code = "FR-512"
    exit_code = exits.SCHEMA


class DatabaseMoved(DatabaseError):
    """The jobs of this database were moved to another one, or are being moved. Nothing was stored. Use that one."""

    code = "FR-992"
    exit_code = exits.REFUSED


class DatabaseFilling(Unavailable):
    """The jobs of another database are being moved here, and it opens when all are there. Nothing was stored."""

    code = "FR-993"


class SchemaTampered(DatabaseError):
    """A migration that was applied does not match its checksum, so the schema may not be what this code expects."""

    code = "FR-513"
    exit_code = exits.SCHEMA
