"""Input that is refused at the door, before anything is stored (2xx)."""

from __future__ import annotations

from fencerow.db.errors.input import InvalidInput


class UnknownJob(InvalidInput):
    """No job of that name is registered here; the closest names are in `why`."""

    code = "FR-202"


class InvalidArguments(InvalidInput):
    """The arguments do not fit the job's parameters."""

    code = "FR-203"


class PayloadTooLarge(InvalidInput):
    """Arguments, result or metadata exceed their size limit. Store the data elsewhere and pass a reference."""

    code = "FR-204"


class InvalidPayload(InvalidInput):
    """A value cannot be kept as JSON faithfully: NaN, Infinity, NUL, a lone surrogate, an unsupported type."""

    code = "FR-205"


class UnknownVerb(InvalidInput, AttributeError):
    """A job or an app has no such verb; it is another job system's. `fix` says what to write."""

    code = "FR-210"


class WrongCall(InvalidInput, TypeError):
    """Something of Fencerow's was called with arguments that it does not take, or without one that it needs."""

    code = "FR-950"


class KeyConflict(InvalidInput):
    """The idempotency key already belongs to another job or to another payload.

    `job_id` is the first job's id and `fingerprint` that of its payload. Use another key, or send
    the same payload to get the same job.
    """

    code = "FR-206"

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, job_id: str = "", fingerprint: str = ""
    ) -> None:
        super().__init__(what, why, fix)
        self.job_id = job_id
        self.fingerprint = fingerprint
