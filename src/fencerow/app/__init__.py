"""Floor 5: declare jobs, submit them by their functions, and hand out clients and workers."""

from fencerow.app.app import App
from fencerow.app.contract import Contract, contract
from fencerow.app.database import Database
from fencerow.app.declare import DeclaredJob
from fencerow.app.opening import LocalDatabaseWarning
from fencerow.app.submission import Call, Draft

__all__ = ["App", "Call", "Contract", "Database", "DeclaredJob", "Draft", "LocalDatabaseWarning", "contract"]
