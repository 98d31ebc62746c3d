"""Errors of durable steps, signals and approvals (960 to 965, 970, 971)."""

from __future__ import annotations

from typing import ClassVar

from fencerow.db.errors.base import FencerowError
from fencerow.db.errors.input import InvalidInput


class StepTwice(InvalidInput):
    """A run asked for two steps of one name: nobody could tell whose result is remembered. Give each its own name."""

    code = "FR-960"


class StepNotPossible(InvalidInput):
    """A step, a sleep or a wait was asked for where nothing can be remembered: in an ephemeral job, inside
    `job.transaction()`, or by a function of the wrong kind. Nothing was stored."""

    code = "FR-961"


class StepsSpent(InvalidInput):
    """A job remembers as many steps, or as many bytes of results, as it may. Let another job go on with the work."""

    code = "FR-962"
    retryable = False


class HistoryMismatch(FencerowError):
    """The code of the handler asks for another step than the job's history has at this place. Both are named.

    The code was changed while the job was on its way. Use `job.patched(...)` for the new branch, or run the old code.
    """

    code = "FR-963"


class SignalTimeout(FencerowError, TimeoutError):
    """No signal came within the `timeout_s` of `job.wait_for`. It is remembered: catch it, or let the job fail."""

    code = "FR-964"
    retryable = False


class SignalRefused(FencerowError):
    """The job takes no signal: it has ended, or has too many that nobody has taken. Nothing was stored."""

    code = "FR-965"


class ApprovalUnknown(FencerowError):
    """An address by which a person answers is none that was made here: it was cut or altered, or its job is gone."""

    code = "FR-970"
    retryable = False
    status: ClassVar[int] = 404


class ApprovalOver(FencerowError):
    """An address by which a person answers was used before, has expired, or its job has ended. Nothing was changed."""

    code = "FR-971"
    retryable = False
    status: ClassVar[int] = 410
