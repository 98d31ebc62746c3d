"""Errors of mutexes (71x)."""

from __future__ import annotations

from datetime import datetime

from fencerow.db.errors.base import FencerowError


class MutexBusy(FencerowError):
    """Somebody else held the mutex until the wait was over. Nothing was taken; try again later.

    `host`, `job_id`, `job_name`, `purpose`, `since` and `until` say who holds it, since when, and until when
    without another renewal. They are None if it had just become free.
    """

    code = "FR-711"
    repeat = "yes"
    retryable = True

    def __init__(
        self,
        what: str,
        why: str = "",
        fix: str = "",
        *,
        key: str = "",
        host: str | None = None,
        job_id: str | None = None,
        job_name: str | None = None,
        purpose: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> None:
        super().__init__(what, why, fix)
        self.key = key
        self.host = host
        self.job_id = job_id
        self.job_name = job_name
        self.purpose = purpose
        self.since = since
        self.until = until


class MutexLost(FencerowError):
    """The mutex is not held any more: it was not renewed in time, was taken over, or an operator freed it.

    Stop what needs it. What was written since may stand beside somebody else's work, unless it was guarded.
    """

    code = "FR-712"
    retryable = True


class StaleToken(FencerowError):
    """A guarded write named a token that is not the current one: somebody else has taken the mutex since.

    Nothing was written by the guard. Roll back, and let whoever holds the mutex now do the work.
    """

    code = "FR-713"
    retryable = True


class MutexMisuse(FencerowError):
    """A mutex was used in a way that cannot work: taken twice by the same code, or asked for its token while free."""

    code = "FR-714"


class MutexNotFound(FencerowError):
    """There is no mutex of that key: it was never taken."""

    code = "FR-715"
