"""Durable jobs in your own PostgreSQL or SQLite database.

    from fencerow import App

    app = App("sqlite:///fencerow.db")

    @app.job
    async def extract(path: str) -> int: ...

    handle = await extract.asubmit("invoice.pdf")
    pages = await handle.aresult()

This package has the names that nearly every program uses. All others are in the package of their feature:
`from fencerow.events import publish`.

The guide: docs/guide.md.
"""

from typing import TYPE_CHECKING

# First: it refuses where the rest could not work.
import fencerow.db.platforms  # pyright: ignore[reportUnusedImport]

# isort: split
import fencerow.wings  # noqa: F401  # pyright: ignore[reportUnusedImport]

# isort: split
from fencerow.core.lazy import lazily
from fencerow.version import __version__

if TYPE_CHECKING:
    from fencerow import errors as errors
    from fencerow.app import App
    from fencerow.client import Client
    from fencerow.config import Config
    from fencerow.contracts import Contract, contract
    from fencerow.core.app import Database
    from fencerow.core.client.handle import Handle
    from fencerow.core.client.refs import Key
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
    from fencerow.core.model.backoff import Backoff
    from fencerow.core.model.classify import is_retryable
    from fencerow.core.model.control import Fail, Retry, Snooze
    from fencerow.core.model.defaults import Defaults
    from fencerow.core.model.retry import RetryRule
    from fencerow.core.model.state import State
    from fencerow.core.worker.plain import Worker
    from fencerow.job import Job
else:
    __getattr__ = lazily(
        __name__,
        {
            "errors": "fencerow.errors",
            "App": "fencerow.app",
            "Client": "fencerow.client",
            "Contract": "fencerow.contracts",
            "Database": "fencerow.core.app",
            "contract": "fencerow.contracts",
            "Handle": "fencerow.core.client.handle",
            "Key": "fencerow.core.client.refs",
            "Backoff": "fencerow.core.model.backoff",
            "Config": "fencerow.config",
            "Defaults": "fencerow.core.model.defaults",
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
            "Fail": "fencerow.core.model.control",
            "Retry": "fencerow.core.model.control",
            "RetryRule": "fencerow.core.model.retry",
            "Snooze": "fencerow.core.model.control",
            "is_retryable": "fencerow.core.model.classify",
            "State": "fencerow.core.model.state",
            "Job": "fencerow.job",
            "Worker": "fencerow.core.worker.plain",
        },
    )

__all__ = [
    "__version__",
    "App",
    "Client",
    "Config",
    "Contract",
    "Database",
    "Defaults",
    "Backoff",
    "Fail",
    "FencerowError",
    "Handle",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobGone",
    "JobNotFound",
    "Key",
    "KeyConflict",
    "LeaseLost",
    "CancelRequested",
    "OutcomeUnknown",
    "ResultTimeout",
    "Retry",
    "RetryRule",
    "Snooze",
    "State",
    "Unavailable",
    "UnknownJob",
    "Worker",
    "contract",
    "is_retryable",
]
