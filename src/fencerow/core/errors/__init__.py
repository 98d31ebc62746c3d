"""Every error a user can meet: what was found, what was expected, what to do, under a stable code.

`str(error)` says the three on lines of their own; `error.line` on one, for what is stored.
Codes never change their meaning; docs/errors.md has a paragraph for each.
"""

from __future__ import annotations

from fencerow.core.errors.attempts import AttemptTimeout as AttemptTimeout
from fencerow.core.errors.attempts import CancelRequested as CancelRequested
from fencerow.core.errors.attempts import LeaseLost as LeaseLost
from fencerow.core.errors.attempts import LoopBlocked as LoopBlocked
from fencerow.core.errors.attempts import TooManyHung as TooManyHung
from fencerow.core.errors.attempts import TransactionMisuse as TransactionMisuse
from fencerow.core.errors.declarations import DeclarationError as DeclarationError
from fencerow.core.errors.declarations import NotImportable as NotImportable
from fencerow.core.errors.input import InvalidArguments as InvalidArguments
from fencerow.core.errors.input import InvalidPayload as InvalidPayload
from fencerow.core.errors.input import KeyConflict as KeyConflict
from fencerow.core.errors.input import PayloadTooLarge as PayloadTooLarge
from fencerow.core.errors.input import UnknownJob as UnknownJob
from fencerow.core.errors.input import UnknownVerb as UnknownVerb
from fencerow.core.errors.input import WrongCall as WrongCall
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
from fencerow.core.errors.jobs import RevivedTooSoon as RevivedTooSoon
from fencerow.core.errors.jobs import SealKeyUnknown as SealKeyUnknown
from fencerow.core.errors.jobs import StoreUnavailable as StoreUnavailable
from fencerow.core.errors.workers import OlderWorkers as OlderWorkers
from fencerow.core.errors.workers import OrderRefused as OrderRefused
from fencerow.core.errors.workers import WorkerGone as WorkerGone
from fencerow.core.errors.workers import WorkerNotFound as WorkerNotFound
from fencerow.db.errors.base import FencerowError as FencerowError
from fencerow.db.errors.database import Busy as Busy
from fencerow.db.errors.database import DatabaseError as DatabaseError
from fencerow.db.errors.database import DatabaseFilling as DatabaseFilling
from fencerow.db.errors.database import DatabaseMoved as DatabaseMoved
from fencerow.db.errors.database import NotPermitted as NotPermitted
from fencerow.db.errors.database import OtherDatabase as OtherDatabase
from fencerow.db.errors.database import OutcomeUnknown as OutcomeUnknown
from fencerow.db.errors.database import ReadOnly as ReadOnly
from fencerow.db.errors.database import RetryTransaction as RetryTransaction
from fencerow.db.errors.database import RowRefused as RowRefused
from fencerow.db.errors.database import SchemaMissing as SchemaMissing
from fencerow.db.errors.database import SchemaTampered as SchemaTampered
from fencerow.db.errors.database import SchemaTooNew as SchemaTooNew
from fencerow.db.errors.database import SchemaTooOld as SchemaTooOld
from fencerow.db.errors.database import StorageFull as StorageFull
from fencerow.db.errors.database import Unavailable as Unavailable
from fencerow.db.errors.database import UnsafeFileSystem as UnsafeFileSystem
from fencerow.db.errors.database import UnusableConnection as UnusableConnection
from fencerow.db.errors.input import BlockingCall as BlockingCall
from fencerow.db.errors.input import InvalidInput as InvalidInput
from fencerow.db.errors.process import OutOfResources as OutOfResources
from fencerow.db.errors.settings import ConfigError as ConfigError
from fencerow.db.errors.settings import MissingExtra as MissingExtra
from fencerow.db.errors.settings import NoDatabase as NoDatabase
from fencerow.db.errors.settings import UnsupportedPlatform as UnsupportedPlatform
from fencerow.db.errors.settings import UrlError as UrlError
