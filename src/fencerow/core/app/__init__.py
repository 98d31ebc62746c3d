"""Declare jobs, submit them by their functions, and hand out clients and workers."""

from fencerow.core.app.app import JobsApp
from fencerow.core.app.calls import Call
from fencerow.core.app.database import Database, LocalDatabaseWarning
from fencerow.core.app.declare import DeclaredBase
from fencerow.core.app.doors import UntypedParameters
from fencerow.core.app.submission import Draft

__all__ = [
    "JobsApp",
    "Call",
    "Database",
    "DeclaredBase",
    "Draft",
    "LocalDatabaseWarning",
    "UntypedParameters",
]
