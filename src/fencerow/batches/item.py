"""`BatchItem`: one job of a batch, as the handler of the batch sees it."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from fencerow.batches.errors import DecidedTwice
from fencerow.core.answering import answer
from fencerow.core.errors import InvalidInput
from fencerow.core.model.control import Fail, Retry, Snooze
from fencerow.core.model.outcome import Succeeded
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.submission import PreparedCall
from fencerow.core.worker.context import Job
from fencerow.core.worker.follow_ups import PreparedJobs
from fencerow.db.strikes import sheltered
from fencerow.db.text import shown

if TYPE_CHECKING:
    from fencerow.batches.errors import NotInBatch

V = TypeVar("V")  # what was submitted
R = TypeVar("R")  # what the job results in

Said = bytes | BaseException  # the encoded result, or the error to decide the job by


@answer
class BatchItem(Generic[V, R]):
    """One job of a batch: say its outcome once, with `succeed`, `fail`, `retry` or `snooze`.

    The outcome is written at once, not when the handler returns, so a later crash in the batch does not
    repeat the job. A job without an outcome succeeds with None when the handler returns, and gets the
    handler's error when it raises. There is no `job.transaction()` in a batch: it commits effects with the
    success of one job, and here each job ends by itself. Safe to use from any thread.
    """

    def __init__(
        self,
        value: V,
        job: Job,
        encode: Callable[[Any], bytes],
        on_said: Callable[[BatchItem[Any, Any]], None],
    ) -> None:
        self.value = value
        self._job = job
        self._encode = encode
        self._on_said = on_said
        self._lock = threading.Lock()
        self._said: Said | None = None
        self._decided = False  # taken before the result is encoded: only one of two threads may say something
        self._closed = False

    def __repr__(self) -> str:
        return f"<BatchItem {self._job.name} {self.id} attempt {self.attempt}>"

    @property
    def id(self) -> str:
        """The job's id: the same in every attempt."""
        return self._job.id

    @property
    def name(self) -> str:
        """The job's name: that of the batch handler."""
        return self._job.name

    @property
    def attempt(self) -> int:
        """The number of this attempt: with the id, a fencing token for other systems."""
        return self._job.attempt

    @property
    def failures(self) -> int:
        """Failed attempts before this one, since the submit or the last revive."""
        return self._job.failures

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata that the submit stored with the job; a copy."""
        return self._job.metadata

    @property
    def headers(self) -> Mapping[str, str]:
        """Texts that travel with the job beside its value: trace context, correlation id."""
        return self._job.headers

    @property
    def cancelled(self) -> bool:
        """Whether to stop working on this job: a cancel, a timeout, a lost lease, a shutdown.

        A cancel is not raised in the batch. Skip the item; it ends `cancelled` unless it succeeds.
        """
        return self._job.cancelled

    def succeed(self, result: R) -> None:
        """End this job with its result. If the result cannot be stored, this job alone fails, and nothing is
        raised here.

        Raises:
            DecidedTwice: its outcome was said before.
        """
        self._decide(lambda: self._encode(result))

    def fail(self, why: str | BaseException) -> None:
        """A text ends this job as failed. An error counts as if a handler of this job alone had raised it.

        Raises:
            DecidedTwice: its outcome was said before.
            InvalidInput: `why` is neither a text nor an error.
        """
        if not isinstance(why, str | BaseException):
            raise InvalidInput(
                f"item.fail got a value of type {type(why).__name__}",
                "a text or an error is expected",
                "pass one of them",
            )
        error = Fail(why) if isinstance(why, str) else why
        self._decide(lambda: error)

    def retry(self, after_s: Seconds | None = None, reason: str = "") -> None:
        """Count this attempt as failed and try again `after_s` seconds later, by default after the job's backoff.

        Raises:
            DecidedTwice: its outcome was said before. InvalidInput: the delay cannot be used.
        """
        error = Retry(after_s, reason)
        self._decide(lambda: error)

    def snooze(self, delay_s: Seconds, reason: str = "") -> None:
        """Run this job again after `delay_s` seconds. This counts as no failure.

        Raises:
            DecidedTwice: its outcome was said before. InvalidInput: the delay cannot be used.
        """
        error = Snooze(delay_s, reason)
        self._decide(lambda: error)

    def submit_next(self, call: PreparedCall | PreparedJobs) -> str:
        """Submit another job, or a flow, with this one's success; see `Job.submit_next`. Before its outcome is said.

        Raises:
            DecidedTwice: its outcome was said before.
            InvalidInput: it was not made by `job.call(...)`, names a connection, or is one too many.
        """
        with self._lock:
            if self._decided:
                raise self._decided_before("got a follow-up after its outcome")
            return self._job.submit_next(call)

    def step(self, name: str, fn: Callable[..., Any], *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002
        """There are no steps in a batch: one call is for many jobs, and could not begin again for one of them.

        Raises:
            NotInBatch: always. Nothing was done.
        """
        raise _not_here(f"item.step({shown(name)})", "remember")

    def emit(self, chunk: object) -> NoReturn:  # noqa: ARG002
        """There is no output in a batch; see `step`.

        Raises:
            NotInBatch: always. Nothing was stored.
        """
        raise _not_here("item.emit(...)", "emit")

    def progress(self, percent: float, note: str | None = None) -> Awaitable[None]:
        """Say how far this job is; see `Job.progress`, also for what it raises."""
        return self._job.progress(percent, note)

    def log(self, message: str, level: str = "info") -> Awaitable[None]:
        """Keep a line with this job; see `Job.log`, also for what it raises."""
        return self._job.log(message, level)

    # --- for the worker ----------------------------------------------------------------------------

    @property
    def said(self) -> Said | None:
        """What the handler said, None while it has said nothing."""
        return self._said

    def followed(self, success: Succeeded) -> Succeeded:
        """Its success with what follows it."""
        return self._job.follow_ups.success(success.result)

    def close(self) -> Said | None:
        """The job is over; what is said from now on is dropped. Returns what was said before."""
        with self._lock:
            self._closed = True
            return self._said

    @sheltered  # said and passed on, or neither
    def _decide(self, say: Callable[[], Said]) -> None:
        with self._lock:
            if self._closed and not self._decided:
                return  # it was cancelled or given up meanwhile: the batch must not fail for that
            if self._decided:
                raise self._decided_before("got a second outcome")
            self._decided = True
        try:
            said = say()
        except InvalidInput as error:  # the result cannot be kept: that is this job's failure alone
            said = error
        with self._lock:
            self._said = said
        self._on_said(self)

    def _decided_before(self, what: str) -> DecidedTwice:
        return DecidedTwice(
            f"job {self.id} {what} in one attempt",
            "the first one stands and may be written already",
            "say one outcome for each item, and what follows it before",
        )


def _not_here(what: str, verb: str) -> NotInBatch:
    from fencerow.batches.errors import NotInBatch  # who only submits never loads it

    return NotInBatch(
        f"{what} is called in a batch handler",
        "one call is for many jobs, and cannot begin again for one of them",
        f"{verb} in a job of its own: item.submit_next(that_job.call(...))",
    )


BatchMiddleware = Callable[[Sequence[BatchItem[Any, Any]], Callable[[], Awaitable[None]]], Awaitable[None]]
