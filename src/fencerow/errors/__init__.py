"""Every error a user can meet: what was found, what was expected, what to do, under a stable code.

`str(error)` is the short form for logs; `error.lines()` the three lines the command prints.
Codes never change their meaning; docs/errors.md has a paragraph for each.
"""

from __future__ import annotations

from typing import Protocol

# One line for each family that has a file of its own.
from fencerow.errors.base import FencerowError as FencerowError
from fencerow.errors.check import CheckArguments as CheckArguments
from fencerow.errors.check import CheckNeedsMore as CheckNeedsMore
from fencerow.errors.check import CheckStuck as CheckStuck
from fencerow.errors.check import NothingRecorded as NothingRecorded
from fencerow.errors.check import NothingToCheck as NothingToCheck
from fencerow.errors.check import ScratchNotEmpty as ScratchNotEmpty
from fencerow.errors.events import DeliveryTimeout as DeliveryTimeout
from fencerow.errors.events import EventNotFound as EventNotFound
from fencerow.errors.events import EventTransactionMisuse as EventTransactionMisuse
from fencerow.errors.events import GroupMismatch as GroupMismatch
from fencerow.errors.events import InvalidTopic as InvalidTopic
from fencerow.errors.events import PartitionLost as PartitionLost
from fencerow.errors.events import UnknownGroup as UnknownGroup
from fencerow.errors.migrations import BackfillRunning as BackfillRunning
from fencerow.errors.migrations import InvalidBackfill as InvalidBackfill
from fencerow.errors.migrations import InvalidMigrations as InvalidMigrations
from fencerow.errors.migrations import LedgerMissing as LedgerMissing
from fencerow.errors.migrations import LedgerUnreadable as LedgerUnreadable
from fencerow.errors.migrations import MigrationEdited as MigrationEdited
from fencerow.errors.migrations import MigrationFailed as MigrationFailed
from fencerow.errors.migrations import MigrationLate as MigrationLate
from fencerow.errors.migrations import MigrationMissing as MigrationMissing
from fencerow.errors.migrations import RangeFailed as RangeFailed
from fencerow.errors.migrations import RevertRefused as RevertRefused
from fencerow.errors.migrations import ShardBusy as ShardBusy
from fencerow.errors.migrations import ShardUnreachable as ShardUnreachable
from fencerow.errors.migrations import UnknownBackfill as UnknownBackfill
from fencerow.errors.migrations import UnknownShard as UnknownShard
from fencerow.errors.mutex import MutexBusy as MutexBusy
from fencerow.errors.mutex import MutexLost as MutexLost
from fencerow.errors.mutex import MutexMisuse as MutexMisuse
from fencerow.errors.mutex import MutexNotFound as MutexNotFound
from fencerow.errors.mutex import StaleToken as StaleToken
from fencerow.errors.once import OnceConflict as OnceConflict
from fencerow.errors.once import OnceLost as OnceLost
from fencerow.errors.once import OnceMisuse as OnceMisuse
from fencerow.errors.once import OnceRunning as OnceRunning
from fencerow.errors.once import SourceBusy as SourceBusy
from fencerow.errors.once import SourceConflict as SourceConflict
from fencerow.errors.once import UnusableTable as UnusableTable
from fencerow.errors.proving import ActorStuck as ActorStuck
from fencerow.errors.proving import CannotExplore as CannotExplore
from fencerow.errors.proving import DrainUnfinished as DrainUnfinished
from fencerow.errors.proving import JobsDidNotSucceed as JobsDidNotSucceed
from fencerow.errors.proving import NoTestApp as NoTestApp
from fencerow.errors.proving import NoTestDatabase as NoTestDatabase
from fencerow.errors.proving import NotRepeatable as NotRepeatable
from fencerow.errors.transitions import InvalidMove as InvalidMove
from fencerow.errors.transitions import MovesMisdeclared as MovesMisdeclared
from fencerow.errors.transitions import UnknownMove as UnknownMove
from fencerow.errors.transitions import WrongTable as WrongTable

# --- settings and declarations (1xx) ---------------------------------------------------------


class ConfigError(FencerowError):
    """A setting is unknown, ill-typed or out of range. Correct it; nothing was started."""

    code = "FR-101"


class UrlError(ConfigError):
    """The database URL cannot be understood. Passwords in it are never shown."""

    code = "FR-102"


class MissingExtra(FencerowError):
    """An optional library is not installed. Install the extra named in `fix`."""

    code = "FR-103"


class UnsupportedPlatform(FencerowError):
    """This operating system is not supported. Use Linux or macOS."""

    code = "FR-107"


class DeclarationError(FencerowError):
    """A job was declared in a way that cannot work (name taken, unsupported parameter kind, bad option)."""

    code = "FR-104"


class NoDatabase(ConfigError):
    """A long-running process was started without a database URL. Give --url or FENCEROW_URL."""

    code = "FR-105"


class NotImportable(DeclarationError):
    """A job that runs in child processes cannot be found by importing the module that declares it."""

    code = "FR-106"
    retryable = True  # as an attempt's failure: another worker may find it


# --- input refused at the door (2xx) -----------------------------------------------------------


class InvalidInput(FencerowError):
    """Input was refused and nothing was stored. Correct it and submit again."""

    code = "FR-201"


class UnknownJob(InvalidInput):
    """No job of that name is registered here; the closest names are in `why`."""

    code = "FR-202"


class InvalidArguments(InvalidInput):
    """The arguments do not fit the job's parameters."""

    code = "FR-203"


class PayloadTooLarge(InvalidInput):
    """Arguments, result or metadata exceed their size limit. Store the data elsewhere and pass a reference."""

    code = "FR-204"


class InvalidPayload(InvalidInput):
    """A value cannot be kept as JSON faithfully: NaN, Infinity, NUL, a lone surrogate, an unsupported type."""

    code = "FR-205"


class KeyConflict(InvalidInput):
    """The idempotency key already belongs to another job or to another payload.

    `job_id` is the first job's id and `fingerprint` that of its payload. Use another key, or send
    the same payload to get the same job.
    """

    code = "FR-206"

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, job_id: str = "", fingerprint: str = ""
    ) -> None:
        super().__init__(what, why, fix)
        self.job_id = job_id
        self.fingerprint = fingerprint


# --- jobs (3xx) ----------------------------------------------------------------------------------


class JobNotFound(FencerowError):
    """There is no such job, live or finished."""

    code = "FR-301"


class JobGone(JobNotFound):
    """The job existed and was removed by retention, or was ephemeral; its key may still remember its id."""

    code = "FR-302"


class IllegalMove(FencerowError):
    """The job's state does not permit the move asked for. `state` is the state that was found."""

    code = "FR-303"

    def __init__(self, what: str, why: str = "", fix: str = "", *, state: str = "") -> None:
        super().__init__(what, why, fix)
        self.state = state


class ResultTimeout(FencerowError, TimeoutError):
    """The job had not ended within the time the caller would wait. It goes on; ask again."""

    code = "FR-304"
    repeat = "yes"


class ReportedError(Protocol):
    """What is kept of the error that ended a job; `code` is for programs. Any of them may be empty."""

    @property
    def type(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def traceback(self) -> str: ...

    @property
    def code(self) -> str: ...


class JobFailed(FencerowError):
    """The awaited job ended `failed`. `error` holds what the last attempt reported."""

    code = "FR-305"

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, job_id: str = "", error: ReportedError
    ) -> None:
        super().__init__(what, why, fix)
        self.job_id = job_id
        self.error = error


class JobCancelled(FencerowError):
    """The awaited job ended `cancelled`; it has no result."""

    code = "FR-306"


class NotReady(ResultTimeout):
    """The job has not ended yet, so there is no result. Wait for it or ask later."""

    code = "FR-307"


class MalformedPayload(FencerowError):
    """The stored arguments or result of one job cannot be decoded. Only that job fails."""

    code = "FR-308"


class ArgumentsTooNew(FencerowError):
    """A job's arguments were stored by newer code than this worker runs. It is given back uncounted."""

    code = "FR-309"


# --- attempts (4xx) -------------------------------------------------------------------------------


class LeaseLost(FencerowError):
    """This attempt no longer holds the job: it ended or belongs to a newer attempt. Stop working on it."""

    code = "FR-401"


class CancelRequested(FencerowError):
    """Somebody asked for this job to be cancelled. Clean up and let it pass through."""

    code = "FR-402"


class AttemptTimeout(FencerowError, TimeoutError):
    """The attempt ran longer than its `timeout_s`. It counts as a failure and obeys the retry rule."""

    code = "FR-403"


class TransactionMisuse(FencerowError):
    """`job.transaction()` was entered twice, or held longer than is safe on this engine."""

    code = "FR-404"


class DecidedTwice(FencerowError):
    """A batch handler said two outcomes for one item. The first one stands."""

    code = "FR-405"


class TooManyHung(FencerowError):
    """So many handlers of a worker ignore their end that it has drained and ended. Start it again."""

    code = "FR-406"


# --- the database (5xx) ---------------------------------------------------------------------------


class DatabaseError(FencerowError):
    """The database refused or could not be reached."""

    code = "FR-501"


class Unavailable(DatabaseError):
    """No connection, or it broke before anything was sent for commit: nothing was stored. Repeat later."""

    code = "FR-502"
    repeat = "yes"


class OutcomeUnknown(DatabaseError):
    """The connection broke, or the disk failed, while a commit was under way: it may have happened. Ask, then repeat.

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
    """The connection passed in cannot carry a submit: failed, closed, read-only, or of an unknown kind."""

    code = "FR-508"


class UnsafeFileSystem(DatabaseError):
    """The SQLite file lies on a network file system, where locks do not hold. Move it or use PostgreSQL."""

    code = "FR-509"


class SchemaMissing(DatabaseError):
    """Fencerow's tables are not there. Run `fencerow migrate`."""

    code = "FR-510"


class SchemaTooNew(DatabaseError):
    """The database was migrated by a newer Fencerow that this one cannot work with. Upgrade this process."""

    code = "FR-511"


class SchemaTooOld(DatabaseError):
    """The database misses migrations that this Fencerow needs. Run `fencerow migrate`."""

    code = "FR-512"


class SchemaTampered(DatabaseError):
    """A migration already applied does not match its checksum: the schema is not what we think it is."""

    code = "FR-513"


# --- workers (6xx) --------------------------------------------------------------------------------


class WorkerNotFound(FencerowError):
    """No worker of that id, name or host is registered, or more than one is and a single one was meant."""

    code = "FR-601"


class WorkerGone(FencerowError):
    """That registration has ended: the worker stopped, was declared dead, or registered anew under another id."""

    code = "FR-602"


class OrderRefused(FencerowError):
    """The worker was not changed: somebody else changed it first, it is leaving, or it cannot be changed.

    `version` is the order that holds now. Look at the worker, then ask again.
    """

    code = "FR-603"

    def __init__(self, what: str, why: str = "", fix: str = "", *, version: int | None = None) -> None:
        super().__init__(what, why, fix)
        self.version = version
