"""What callers meet who ask for a job, its result or a move (3xx)."""

from __future__ import annotations

from typing import Protocol

import fencerow.db.errors.exits as exits
from fencerow.db.errors.base import FencerowError


class JobNotFound(FencerowError):
    """There is no such job, live or finished."""

    code = "FR-301"


class JobGone(JobNotFound):
    """The job existed and was removed by retention, or was ephemeral; its key may still remember its id."""

    code = "FR-302"


class IllegalMove(FencerowError):
    """The job's state does not permit the move asked for. `state` is the state that was found."""

    code = "FR-303"

    def __init__(self, what: str, why: str = "", fix: str = "", *, state: str = "") -> None:
        super().__init__(what, why, fix)
        self.state = state


class RevivedTooSoon(IllegalMove):
    """Another job must end before this one is queued again: they would do and undo the same at once."""

    code = "FR-937"


class ResultTimeout(FencerowError, TimeoutError):
    """The job did not end within the time that the caller waited. It goes on; ask again."""

    code = "FR-304"
    repeat = "yes"
    exit_code = exits.TIMED_OUT


class ReportedError(Protocol):
    """What is kept of the error that ended a job; `code` is for programs. Any of them may be empty."""

    @property
    def type(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def traceback(self) -> str: ...

    @property
    def code(self) -> str: ...


class JobFailed(FencerowError):
    """The awaited job ended `failed`. `error` holds what the last attempt reported."""

    code = "FR-305"
    exit_code = exits.JOB_FAILED

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, job_id: str = "", error: ReportedError
    ) -> None:
        super().__init__(what, why, fix)
        self.job_id = job_id
        self.error = error


class JobCancelled(FencerowError):
    """The awaited job ended `cancelled`; it has no result."""

    code = "FR-306"
    exit_code = exits.JOB_FAILED


class NotReady(ResultTimeout):
    """The job has not ended yet, so there is no result. Wait for it or ask later."""

    code = "FR-307"


class MalformedPayload(FencerowError):
    """The stored arguments or result of one job cannot be decoded. Only that job fails."""

    code = "FR-308"


class ArgumentsTooNew(FencerowError):
    """A job's arguments were stored by newer code than this worker runs. The job is released, without a failure."""

    code = "FR-309"


class PayloadAltered(FencerowError):
    """Stored arguments or a stored result are not what was sealed or signed. Nothing was run, and nothing is handed on.

    Somebody changed them in the database, moved them to another job, or stored them without a seal.
    """

    code = "FR-310"


class SealKeyUnknown(FencerowError):
    """A payload is sealed or signed under a key that this program does not have. Nothing was run; give it the key."""

    code = "FR-311"


class StoreUnavailable(FencerowError):
    """The store of large payloads does not answer. A submit stored nothing: repeat it. A job waits until it does."""

    code = "FR-312"
    repeat = "yes"


class PayloadMissing(FencerowError):
    """A large payload is not in its store any more. Nothing was run."""

    code = "FR-313"
