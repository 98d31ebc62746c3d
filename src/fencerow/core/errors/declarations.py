"""What can be wrong with declarations (1xx)."""

from __future__ import annotations

import fencerow.db.errors.exits as exits
from fencerow.db.errors.base import FencerowError


class DeclarationError(FencerowError):
    """A job was declared in a way that cannot work (name taken, unsupported parameter kind, bad option)."""

    code = "FR-104"
    exit_code = exits.REFUSED


class NotImportable(DeclarationError):
    """A job that runs in child processes cannot be found by importing the module that declares it."""

    code = "FR-106"
    retryable = True  # as an attempt's failure: another worker may find it
