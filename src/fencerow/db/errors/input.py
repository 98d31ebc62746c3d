"""What callers may get wrong (2xx)."""

from __future__ import annotations

import fencerow.db.errors.exits as exits
from fencerow.db.errors.base import FencerowError


class InvalidInput(FencerowError):
    """Input was refused and nothing was stored. Correct it and submit again."""

    code = "FR-201"
    exit_code = exits.REFUSED


class BlockingCall(InvalidInput):
    """A sync verb was used inside a running event loop. Nothing was sent; use its async twin."""

    code = "FR-207"
