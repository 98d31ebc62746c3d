"""Declare jobs, submit them by their functions, and hand out clients and workers."""

from fencerow.core.app.app import JobsApp
from fencerow.core.app.contract import Contract, contract
from fencerow.core.app.database import Database
from fencerow.core.app.declare import DeclaredJob
from fencerow.core.app.opening import LocalDatabaseWarning
from fencerow.core.app.submission import Call, Draft

__all__ = [
    "JobsApp",
    "Call",
    "Contract",
    "Database",
    "DeclaredJob",
    "Draft",
    "LocalDatabaseWarning",
    "contract",
]
