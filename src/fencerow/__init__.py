"""Durable jobs in your own PostgreSQL or SQLite database.

from fencerow import App

app = App("sqlite:///fencerow.db")

@app.job
async def extract(path: str) -> int: ...

handle = await extract.asubmit("invoice.pdf")
pages = await handle.aresult()
"""

# First: it refuses where the rest could not work.
import fencerow.model.platforms  # noqa: F401  # pyright: ignore[reportUnusedImport]

# isort: split
from fencerow.app import App, Call, Contract, Database, DeclaredJob, Draft, LocalDatabaseWarning, contract
from fencerow.app.backfill import Backfill
from fencerow.app.backfill_status import BackfillStatus
from fencerow.app.consumer import consumer
from fencerow.client.client import Client
from fencerow.client.handle import Handle
from fencerow.client.refs import CancelAnswer, Key
from fencerow.config import Backoff, Config, Defaults
from fencerow.errors import (
    CancelRequested,
    FencerowError,
    InvalidInput,
    InvalidMove,
    JobCancelled,
    JobFailed,
    JobGone,
    JobNotFound,
    KeyConflict,
    LeaseLost,
    MovesMisdeclared,
    MutexBusy,
    MutexLost,
    OutcomeUnknown,
    PartitionLost,
    ResultTimeout,
    StaleToken,
    Unavailable,
    UnknownJob,
    UnknownMove,
    WrongTable,
)
from fencerow.model.retry import Fail, Retry, RetryRule, Snooze, is_retryable
from fencerow.model.state import State
from fencerow.primitives.advisory import (
    aadvisory_lock,
    advisory_lock,
    atry_advisory_lock,
    try_advisory_lock,
)
from fencerow.primitives.bus import EventBus
from fencerow.primitives.migrator import Migrator
from fencerow.primitives.mutex import Mutex
from fencerow.primitives.once import Once, once
from fencerow.primitives.once_run import OnceRun
from fencerow.primitives.outbox import NewEvent, apublish, apublish_many, publish, publish_many
from fencerow.primitives.replace import Replacing, forget_source, replace_for
from fencerow.primitives.sources import Found
from fencerow.primitives.transitions import (
    Lease,
    Move,
    Moved,
    MoveEvents,
    Overdue,
    Publisher,
    Reaped,
    Refusal,
    Stuck,
    SubState,
    Transitions,
)
from fencerow.primitives.window import Admitted, DedupeWindow
from fencerow.version import __version__
from fencerow.worker.context import Job
from fencerow.worker.events.event import Event
from fencerow.worker.item import BatchItem
from fencerow.worker.worker import Worker

__all__ = [
    "__version__",
    "App",
    "Database",
    "Job",
    "BatchItem",
    "Handle",
    "DeclaredJob",
    "Contract",
    "contract",
    "Call",
    "Draft",
    "Client",
    "Key",
    "CancelAnswer",
    "Worker",
    "once",
    "Once",
    "OnceRun",
    "DedupeWindow",
    "Admitted",
    "replace_for",
    "Replacing",
    "Found",
    "forget_source",
    "Mutex",
    "advisory_lock",
    "aadvisory_lock",
    "try_advisory_lock",
    "atry_advisory_lock",
    "consumer",
    "Event",
    "EventBus",
    "NewEvent",
    "publish",
    "apublish",
    "publish_many",
    "apublish_many",
    "State",
    "Transitions",
    "Move",
    "Lease",
    "Overdue",
    "SubState",
    "Refusal",
    "Stuck",
    "Reaped",
    "Moved",
    "MoveEvents",
    "Publisher",
    "Config",
    "Defaults",
    "Backoff",
    "RetryRule",
    "Retry",
    "Fail",
    "Snooze",
    "is_retryable",
    "FencerowError",
    "InvalidInput",
    "UnknownJob",
    "KeyConflict",
    "JobNotFound",
    "JobGone",
    "JobFailed",
    "JobCancelled",
    "ResultTimeout",
    "CancelRequested",
    "LeaseLost",
    "MutexBusy",
    "MutexLost",
    "StaleToken",
    "Unavailable",
    "OutcomeUnknown",
    "MovesMisdeclared",
    "UnknownMove",
    "InvalidMove",
    "WrongTable",
    "PartitionLost",
    "LocalDatabaseWarning",
    "Migrator",
    "Backfill",
    "BackfillStatus",
]
