"""Errors of batch handlers (405, 969)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError
from fencerow.db.errors.input import InvalidInput


class NotInBatch(InvalidInput):
    """A step, or output, was asked for in a batch handler, where one call is for many jobs. Nothing was done. Do it in
    a job of its own."""

    code = "FR-969"
    retryable = False


class DecidedTwice(FencerowError):
    """A batch handler said two outcomes for one item. The first one stands."""

    code = "FR-405"
