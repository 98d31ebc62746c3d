"""The errors of the floor below the core: of settings, databases, and calls that no database could serve.

Callers find them in `fencerow.errors` with all others.
"""

from __future__ import annotations

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
