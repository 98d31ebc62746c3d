"""Durable jobs in your own PostgreSQL or SQLite database.

from fencerow import App

app = App("sqlite:///fencerow.db")

@app.job
async def extract(path: str) -> int: ...

handle = await extract.asubmit("invoice.pdf")
pages = await handle.aresult()
"""

# First: it refuses where the rest could not work.
import fencerow.core.model.platforms  # pyright: ignore[reportUnusedImport]

# isort: split
import fencerow.wings  # noqa: F401  # pyright: ignore[reportUnusedImport]

# isort: split
from fencerow.app import App
from fencerow.batches.item import BatchItem
from fencerow.client import Client
from fencerow.core.app import Call, Contract, Database, DeclaredJob, Draft, LocalDatabaseWarning, contract
from fencerow.core.client.handle import Handle
from fencerow.core.client.refs import CancelAnswer, Key
from fencerow.core.config import Backoff, Config, Defaults
from fencerow.core.errors import (
    CancelRequested,
    FencerowError,
    InvalidInput,
    JobCancelled,
    JobFailed,
    JobGone,
    JobNotFound,
    KeyConflict,
    LeaseLost,
    OutcomeUnknown,
    ResultTimeout,
    Unavailable,
    UnknownJob,
)
from fencerow.core.model.retry import Fail, Retry, RetryRule, Snooze, is_retryable
from fencerow.core.model.state import State
from fencerow.core.worker.context import Job
from fencerow.core.worker.worker import Worker
from fencerow.events.bus import EventBus
from fencerow.events.declare import consumer
from fencerow.events.errors import PartitionLost
from fencerow.events.event import Event
from fencerow.events.outbox import NewEvent, apublish, apublish_many, publish, publish_many
from fencerow.guards.mutex.advisory import (
    aadvisory_lock,
    advisory_lock,
    atry_advisory_lock,
    try_advisory_lock,
)
from fencerow.guards.mutex.errors import MutexBusy, MutexLost, StaleToken
from fencerow.guards.mutex.mutex import Mutex
from fencerow.guards.once.once import Once, once
from fencerow.guards.once.run import OnceRun
from fencerow.guards.once.window import Admitted, DedupeWindow
from fencerow.guards.replace.replace import Replacing, forget_source, replace_for
from fencerow.guards.replace.sources import Found
from fencerow.guards.transitions import (
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
from fencerow.guards.transitions.errors import InvalidMove, MovesMisdeclared, UnknownMove, WrongTable
from fencerow.migrations import Migrator
from fencerow.migrations.backfills.backfill import Backfill
from fencerow.migrations.backfills.status import BackfillStatus
from fencerow.version import __version__

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
