"""Errors of limits (79x)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError
from fencerow.db.errors.input import InvalidInput


class UnknownLimit(InvalidInput):
    """Nobody defined the limit that was named, so nothing was stored. Define it first, or correct its name."""

    code = "FR-791"


class LimitConflict(FencerowError):
    """Two definitions of one limit contradict each other. Nothing was changed; say which one counts."""

    code = "FR-792"
