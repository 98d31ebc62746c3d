"""What a move refuses, and what it finds at its end."""

from __future__ import annotations

import fencerow.db.errors.exits as exits
from fencerow.db.errors.base import FencerowError


class MoveRefused(FencerowError):
    """The jobs cannot be moved between these two databases, or not now. Nothing was opened twice; the message says what
    to put right. Then run the same command again: it goes on where it was."""

    code = "FR-994"
    exit_code = exits.REFUSED


class MoveUnverified(FencerowError):
    """What came is not what was sent, so the new database was not opened: none of it was committed there. Run the
    command again; if it says so again, take the move back with `--reopen`, and report it."""

    code = "FR-995"
