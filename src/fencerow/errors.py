"""Every error a user can meet: what was found, what was expected, what to do, under a stable code.

`str(error)` is the short form for logs; `error.lines()` the three lines the command prints.
Codes never change their meaning; docs/errors.md has a paragraph for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.errors.attempts import AttemptTimeout as AttemptTimeout
from fencerow.core.errors.attempts import CancelRequested as CancelRequested
from fencerow.core.errors.attempts import DecidedTwice as DecidedTwice
from fencerow.core.errors.attempts import LeaseLost as LeaseLost
from fencerow.core.errors.attempts import LoopBlocked as LoopBlocked
from fencerow.core.errors.attempts import TooManyHung as TooManyHung
from fencerow.core.errors.attempts import TransactionMisuse as TransactionMisuse
from fencerow.core.errors.base import FencerowError as FencerowError
from fencerow.core.errors.database import Busy as Busy
from fencerow.core.errors.database import DatabaseError as DatabaseError
from fencerow.core.errors.database import OtherDatabase as OtherDatabase
from fencerow.core.errors.database import OutcomeUnknown as OutcomeUnknown
from fencerow.core.errors.database import ReadOnly as ReadOnly
from fencerow.core.errors.database import RetryTransaction as RetryTransaction
from fencerow.core.errors.database import SchemaMissing as SchemaMissing
from fencerow.core.errors.database import SchemaTampered as SchemaTampered
from fencerow.core.errors.database import SchemaTooNew as SchemaTooNew
from fencerow.core.errors.database import SchemaTooOld as SchemaTooOld
from fencerow.core.errors.database import StorageFull as StorageFull
from fencerow.core.errors.database import Unavailable as Unavailable
from fencerow.core.errors.database import UnsafeFileSystem as UnsafeFileSystem
from fencerow.core.errors.database import UnusableConnection as UnusableConnection
from fencerow.core.errors.input import AmbiguousId as AmbiguousId
from fencerow.core.errors.input import BlockingCall as BlockingCall
from fencerow.core.errors.input import InvalidArguments as InvalidArguments
from fencerow.core.errors.input import InvalidInput as InvalidInput
from fencerow.core.errors.input import InvalidPayload as InvalidPayload
from fencerow.core.errors.input import KeyConflict as KeyConflict
from fencerow.core.errors.input import PayloadTooLarge as PayloadTooLarge
from fencerow.core.errors.input import UnknownJob as UnknownJob
from fencerow.core.errors.input import UnknownVerb as UnknownVerb
from fencerow.core.errors.jobs import ArgumentsTooNew as ArgumentsTooNew
from fencerow.core.errors.jobs import IllegalMove as IllegalMove
from fencerow.core.errors.jobs import JobCancelled as JobCancelled
from fencerow.core.errors.jobs import JobFailed as JobFailed
from fencerow.core.errors.jobs import JobGone as JobGone
from fencerow.core.errors.jobs import JobNotFound as JobNotFound
from fencerow.core.errors.jobs import MalformedPayload as MalformedPayload
from fencerow.core.errors.jobs import NotReady as NotReady
from fencerow.core.errors.jobs import PayloadAltered as PayloadAltered
from fencerow.core.errors.jobs import PayloadMissing as PayloadMissing
from fencerow.core.errors.jobs import ReportedError as ReportedError
from fencerow.core.errors.jobs import ResultTimeout as ResultTimeout
from fencerow.core.errors.jobs import SealKeyUnknown as SealKeyUnknown
from fencerow.core.errors.jobs import StoreUnavailable as StoreUnavailable
from fencerow.core.errors.settings import ConfigError as ConfigError
from fencerow.core.errors.settings import DeclarationError as DeclarationError
from fencerow.core.errors.settings import MissingExtra as MissingExtra
from fencerow.core.errors.settings import NoDatabase as NoDatabase
from fencerow.core.errors.settings import NotImportable as NotImportable
from fencerow.core.errors.settings import UnsupportedPlatform as UnsupportedPlatform
from fencerow.core.errors.settings import UrlError as UrlError
from fencerow.core.errors.workers import OlderWorkers as OlderWorkers
from fencerow.core.errors.workers import OrderRefused as OrderRefused
from fencerow.core.errors.workers import OutOfResources as OutOfResources
from fencerow.core.errors.workers import WorkerGone as WorkerGone
from fencerow.core.errors.workers import WorkerNotFound as WorkerNotFound
from fencerow.core.errors.workers import WorkersNotStarted as WorkersNotStarted
from fencerow.events.errors import DeliveryTimeout as DeliveryTimeout
from fencerow.events.errors import EventNotFound as EventNotFound
from fencerow.events.errors import EventTransactionMisuse as EventTransactionMisuse
from fencerow.events.errors import GroupMismatch as GroupMismatch
from fencerow.events.errors import InvalidTopic as InvalidTopic
from fencerow.events.errors import PartitionLost as PartitionLost
from fencerow.events.errors import UnknownGroup as UnknownGroup
from fencerow.guards.mutex.errors import MutexBusy as MutexBusy
from fencerow.guards.mutex.errors import MutexLost as MutexLost
from fencerow.guards.mutex.errors import MutexMisuse as MutexMisuse
from fencerow.guards.mutex.errors import MutexNotFound as MutexNotFound
from fencerow.guards.mutex.errors import StaleToken as StaleToken
from fencerow.guards.once.errors import OnceConflict as OnceConflict
from fencerow.guards.once.errors import OnceLost as OnceLost
from fencerow.guards.once.errors import OnceMisuse as OnceMisuse
from fencerow.guards.once.errors import OnceRunning as OnceRunning
from fencerow.guards.once.errors import SourceBusy as SourceBusy
from fencerow.guards.once.errors import SourceConflict as SourceConflict
from fencerow.guards.once.errors import UnusableTable as UnusableTable
from fencerow.guards.transitions.errors import InvalidMove as InvalidMove
from fencerow.guards.transitions.errors import MovesMisdeclared as MovesMisdeclared
from fencerow.guards.transitions.errors import UnknownMove as UnknownMove
from fencerow.guards.transitions.errors import WrongTable as WrongTable
from fencerow.handovers.errors import HandoverLost as HandoverLost
from fencerow.handovers.errors import HandoverNotFound as HandoverNotFound
from fencerow.limits.errors import LimitConflict as LimitConflict
from fencerow.limits.errors import UnknownLimit as UnknownLimit
from fencerow.migrations.errors import BackfillRunning as BackfillRunning
from fencerow.migrations.errors import InvalidBackfill as InvalidBackfill
from fencerow.migrations.errors import InvalidMigrations as InvalidMigrations
from fencerow.migrations.errors import LedgerMissing as LedgerMissing
from fencerow.migrations.errors import LedgerUnreadable as LedgerUnreadable
from fencerow.migrations.errors import MigrationEdited as MigrationEdited
from fencerow.migrations.errors import MigrationFailed as MigrationFailed
from fencerow.migrations.errors import MigrationLate as MigrationLate
from fencerow.migrations.errors import MigrationMissing as MigrationMissing
from fencerow.migrations.errors import RangeFailed as RangeFailed
from fencerow.migrations.errors import RevertRefused as RevertRefused
from fencerow.migrations.errors import ShardBusy as ShardBusy
from fencerow.migrations.errors import ShardUnreachable as ShardUnreachable
from fencerow.migrations.errors import UnknownBackfill as UnknownBackfill
from fencerow.migrations.errors import UnknownShard as UnknownShard
from fencerow.planning.errors import InvalidPlan as InvalidPlan
from fencerow.planning.errors import NothingMeasured as NothingMeasured
from fencerow.proof import moved
from fencerow.schedules.errors import InvalidEntities as InvalidEntities
from fencerow.schedules.errors import InvalidSchedule as InvalidSchedule
from fencerow.schedules.errors import InvalidWindow as InvalidWindow
from fencerow.schedules.errors import NoEntities as NoEntities
from fencerow.schedules.errors import ScheduleTaken as ScheduleTaken
from fencerow.schedules.errors import UnknownSchedule as UnknownSchedule
from fencerow.schedules.errors import UnknownZone as UnknownZone
from fencerow.testing.errors import DrainUnfinished as DrainUnfinished
from fencerow.testing.errors import JobsDidNotSucceed as JobsDidNotSucceed
from fencerow.testing.errors import NoTestApp as NoTestApp
from fencerow.testing.errors import NoTestDatabase as NoTestDatabase

if not TYPE_CHECKING:
    __getattr__ = moved(
        __name__,
        dict.fromkeys(
            (
                "CheckArguments",
                "CheckNeedsMore",
                "CheckStuck",
                "NothingRecorded",
                "NothingToCheck",
                "ScratchNotEmpty",
                "ActorStuck",
                "CannotExplore",
                "NotRepeatable",
            ),
            "fencerow_proof.errors",
        ),
    )
