"""What a handler and its worker meet while an attempt runs (4xx)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError


class LeaseLost(FencerowError):
    """This attempt no longer holds the job: it ended or belongs to a newer attempt. Stop working on it."""

    code = "FR-401"


class CancelRequested(FencerowError):
    """Somebody asked for this job to be cancelled. Clean up and let it pass through."""

    code = "FR-402"


class AttemptTimeout(FencerowError, TimeoutError):
    """The attempt ran longer than its `timeout_s`. It counts as a failure and obeys the retry rule."""

    code = "FR-403"


class TransactionMisuse(FencerowError):
    """`job.transaction()` was entered twice, or held longer than is safe on this engine."""

    code = "FR-404"


class LoopBlocked(FencerowError):
    """A handler blocked the event loop beyond its time limit, or beyond a request to end; the worker's process ended.

    The job's attempt counts as timed out. The worker's other jobs were released, without a failure.
    """

    code = "FR-407"


class TooManyHung(FencerowError):
    """Too many handlers of a worker ignored their end, so the worker drained and ended. Start it again."""

    code = "FR-406"
