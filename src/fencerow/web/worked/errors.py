"""Errors of jobs worked over HTTP (939 to 944)."""

from __future__ import annotations

from typing import ClassVar

from fencerow.db.errors.base import FencerowError


class WorkedFailed(FencerowError):
    """The endpoint that works a job did not do it: it answered with an error, or not at all. The attempt has failed.

    `retryable`: whether the job's rule may try again; `retry_after` (seconds): how long the endpoint wants to be left
    alone, if it said so; `status`: what it answered, if it did.
    """

    code = "FR-940"

    def __init__(
        self,
        what: str,
        why: str = "",
        fix: str = "",
        *,
        retryable: bool = True,
        retry_after: float | None = None,
        answered: int | None = None,
    ) -> None:
        super().__init__(what, why, fix)
        self.retryable = retryable
        self.retry_after = retry_after
        self.answered = answered


class WorkedUnfit(FencerowError):
    """The endpoint's result is no JSON, too large, or not of the type that the job declares. The job has failed."""

    code = "FR-941"
    retryable = False


class WorkedOverdue(FencerowError, TimeoutError):
    """The endpoint said that it answers later, and did not in time. The attempt has failed; the job's rule decides."""

    code = "FR-942"
    retryable = True


class ResultUnfit(FencerowError):
    """An endpoint's answer by the callback has a result that is not of the type that the job declares. Nothing was
    changed: the attempt goes on, and may still be answered."""

    code = "FR-939"
    status: ClassVar[int] = 422


class AttemptOver(FencerowError):
    """An endpoint's call came too late: its attempt was answered, is over, or belongs to nobody. Nothing was changed.

    `reason` says which: `answered`, `cancelled`, `ended`, `overdue`, `superseded`. Stop working on it.
    """

    code = "FR-943"
    status: ClassVar[int] = 409

    def __init__(self, what: str, why: str = "", fix: str = "", *, reason: str = "superseded") -> None:
        super().__init__(what, why, fix)
        self.reason = reason


class AttemptUnknown(FencerowError):
    """The token is not that of this attempt: it was cut or altered, or its job is gone. Nothing was changed."""

    code = "FR-944"
    status: ClassVar[int] = 401
