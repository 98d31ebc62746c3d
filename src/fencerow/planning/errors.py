"""What can be wrong with a plan (84x)."""

from __future__ import annotations

from fencerow.db.errors import exits
from fencerow.db.errors.base import FencerowError


class InvalidPlan(FencerowError):
    """A plan cannot be read, leaves out what the calculation needs, or contradicts itself. Nothing was calculated."""

    code = "FR-840"
    exit_code = exits.REFUSED


class NothingMeasured(FencerowError):
    """The database knows too little of a job whose duration or rate a plan leaves out. Nothing was calculated."""

    code = "FR-841"
