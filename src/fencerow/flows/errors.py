"""Errors of flows (98x)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError
from fencerow.db.errors.input import InvalidInput


class InvalidFlow(InvalidInput):
    """A flow says something that it cannot: a job that is no call, a name that is no text, a key where none can be.

    Nothing was stored.
    """

    code = "FR-980"


class FlowCycle(InvalidFlow):
    """Jobs of a flow wait for one another, so that none of them could ever start. Nothing was stored."""

    code = "FR-981"


class UnknownFlowJob(InvalidFlow):
    """A job waits for one that its flow does not have. Nothing was stored."""

    code = "FR-982"


class FlowNameTaken(InvalidFlow):
    """Two jobs of one flow have the same name. Nothing was stored."""

    code = "FR-983"


class FlowTooLarge(InvalidFlow):
    """A flow has more jobs, more edges, or a longer chain than one may have. Nothing was stored."""

    code = "FR-984"


class FlowNotFound(FencerowError):
    """There is no flow of that id, or it was removed after its end."""

    code = "FR-985"


class FlowConflict(InvalidFlow):
    """A flow was submitted before under this key, and it was another one. Nothing was stored."""

    code = "FR-986"


class FlowEnded(FencerowError):
    """The flow has ended, so there is nothing to cancel; or it has not, so there is nothing to run again."""

    code = "FR-987"


class NoFlowResult(FencerowError):
    """No job of that name has a result in this flow: it did not succeed, or the flow keeps none of it."""

    code = "FR-988"
