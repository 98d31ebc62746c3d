"""Errors of handovers (83x)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError


class HandoverNotFound(FencerowError):
    """This receiver has no handover of that job: the id is unknown, or its end is handed to nobody or to another."""

    code = "FR-831"


class HandoverLost(FencerowError):
    """The take is over: its lease ended and somebody else took the handover, or a person revived the job.

    Nothing was changed. What was done with it may happen once more, by whoever has it now.
    """

    code = "FR-832"
