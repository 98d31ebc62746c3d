"""Durable jobs in your own PostgreSQL or SQLite database.

from fencerow import App

app = App("sqlite:///fencerow.db")

@app.job
async def extract(path: str) -> int: ...

handle = await extract.asubmit("invoice.pdf")
pages = await handle.aresult()
"""

from typing import TYPE_CHECKING

# First: it refuses where the rest could not work.
import fencerow.core.model.platforms  # pyright: ignore[reportUnusedImport]

# isort: split
import fencerow.wings  # noqa: F401  # pyright: ignore[reportUnusedImport]

# isort: split
from fencerow.core.lazy import lazily
from fencerow.version import __version__

if TYPE_CHECKING:
    from fencerow import errors as errors
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
else:
    __getattr__ = lazily(
        __name__,
        {
            "errors": "fencerow.errors",
            "App": "fencerow.app",
            "BatchItem": "fencerow.batches.item",
            "Client": "fencerow.client",
            "Call": "fencerow.core.app",
            "Contract": "fencerow.core.app",
            "Database": "fencerow.core.app",
            "DeclaredJob": "fencerow.core.app",
            "Draft": "fencerow.core.app",
            "LocalDatabaseWarning": "fencerow.core.app",
            "contract": "fencerow.core.app",
            "Handle": "fencerow.core.client.handle",
            "CancelAnswer": "fencerow.core.client.refs",
            "Key": "fencerow.core.client.refs",
            "Backoff": "fencerow.core.config",
            "Config": "fencerow.core.config",
            "Defaults": "fencerow.core.config",
            "CancelRequested": "fencerow.core.errors",
            "FencerowError": "fencerow.core.errors",
            "InvalidInput": "fencerow.core.errors",
            "JobCancelled": "fencerow.core.errors",
            "JobFailed": "fencerow.core.errors",
            "JobGone": "fencerow.core.errors",
            "JobNotFound": "fencerow.core.errors",
            "KeyConflict": "fencerow.core.errors",
            "LeaseLost": "fencerow.core.errors",
            "OutcomeUnknown": "fencerow.core.errors",
            "ResultTimeout": "fencerow.core.errors",
            "Unavailable": "fencerow.core.errors",
            "UnknownJob": "fencerow.core.errors",
            "Fail": "fencerow.core.model.retry",
            "Retry": "fencerow.core.model.retry",
            "RetryRule": "fencerow.core.model.retry",
            "Snooze": "fencerow.core.model.retry",
            "is_retryable": "fencerow.core.model.retry",
            "State": "fencerow.core.model.state",
            "Job": "fencerow.core.worker.context",
            "Worker": "fencerow.core.worker.worker",
            "EventBus": "fencerow.events.bus",
            "consumer": "fencerow.events.declare",
            "PartitionLost": "fencerow.events.errors",
            "Event": "fencerow.events.event",
            "NewEvent": "fencerow.events.outbox",
            "apublish": "fencerow.events.outbox",
            "apublish_many": "fencerow.events.outbox",
            "publish": "fencerow.events.outbox",
            "publish_many": "fencerow.events.outbox",
            "aadvisory_lock": "fencerow.guards.mutex.advisory",
            "advisory_lock": "fencerow.guards.mutex.advisory",
            "atry_advisory_lock": "fencerow.guards.mutex.advisory",
            "try_advisory_lock": "fencerow.guards.mutex.advisory",
            "MutexBusy": "fencerow.guards.mutex.errors",
            "MutexLost": "fencerow.guards.mutex.errors",
            "StaleToken": "fencerow.guards.mutex.errors",
            "Mutex": "fencerow.guards.mutex.mutex",
            "Once": "fencerow.guards.once.once",
            "once": "fencerow.guards.once.once",
            "OnceRun": "fencerow.guards.once.run",
            "Admitted": "fencerow.guards.once.window",
            "DedupeWindow": "fencerow.guards.once.window",
            "Replacing": "fencerow.guards.replace.replace",
            "forget_source": "fencerow.guards.replace.replace",
            "replace_for": "fencerow.guards.replace.replace",
            "Found": "fencerow.guards.replace.sources",
            "Lease": "fencerow.guards.transitions",
            "Move": "fencerow.guards.transitions",
            "MoveEvents": "fencerow.guards.transitions",
            "Moved": "fencerow.guards.transitions",
            "Overdue": "fencerow.guards.transitions",
            "Publisher": "fencerow.guards.transitions",
            "Reaped": "fencerow.guards.transitions",
            "Refusal": "fencerow.guards.transitions",
            "Stuck": "fencerow.guards.transitions",
            "SubState": "fencerow.guards.transitions",
            "Transitions": "fencerow.guards.transitions",
            "InvalidMove": "fencerow.guards.transitions.errors",
            "MovesMisdeclared": "fencerow.guards.transitions.errors",
            "UnknownMove": "fencerow.guards.transitions.errors",
            "WrongTable": "fencerow.guards.transitions.errors",
            "Migrator": "fencerow.migrations",
            "Backfill": "fencerow.migrations.backfills.backfill",
            "BackfillStatus": "fencerow.migrations.backfills.status",
        },
    )

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
