"""From how an attempt ended to what its job becomes: by the error, by what the attempt was asked, by reading."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from fencerow.core.errors import (
    ArgumentsTooNew,
    AttemptTimeout,
    CancelRequested,
    ConfigError,
    LeaseLost,
    PayloadAltered,
    PayloadMissing,
    SealKeyUnknown,
    StoreUnavailable,
    TransactionMisuse,
)
from fencerow.core.model.backoff import backoff_of
from fencerow.core.model.describe import describe
from fencerow.core.model.job import Claimed
from fencerow.core.model.outcome import Failed, Outcome, Released, Stopped
from fencerow.core.model.retry import RetryRule, after_failure
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob, Requeued
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.attempt import Attempt, Interrupt, OutOfTime
from fencerow.core.worker.lines import FAULT_CODE
from fencerow.db.engine import Engine
from fencerow.db.text import said_of
from fencerow.db.threads import NoThread
from fencerow.db.trouble import is_shortage, is_trouble

log = logging.getLogger("fencerow.worker")

LOOK_AGAIN_S = 0.2
NO_THREAD_S = 1.0  # until a job that could not start may be claimed again
UNREADABLE_S_MAX = 300.0  # between two looks whether the code, or the key, for a job's arguments has come
DOUBLINGS_MAX = 10
UNREADABLE_CODES = {ArgumentsTooNew: "args_too_new", SealKeyUnknown: "seal_key_unknown"}
ALTERED_CODE, MISSING_CODE = "payload_altered", "payload_missing"
AWAY_S_MAX = 60.0  # between two looks whether a store answers again


@dataclass(frozen=True)
class Committed:
    """The success was committed inside `job.transaction()`, and with it the follow-ups that were `made`; there is
    nothing left to acknowledge."""

    moved: MovedJob
    made: list[Requeued] = field(default_factory=list)


Decision = Outcome | Committed | None  # None: the job is not ours any more, and nothing is written


def _unmoved(_error: BaseException) -> None:
    """No error is met in a way of its own."""


class Decider:
    """Decides what attempts become.

    `held_max_s`: how long a transaction may be open, if others wait for it. `unknown_max_s`: how long a job waits for
    code that knows its arguments, or for the key that opens them. `meet` is called with each error before anything is
    decided by it.
    """

    def __init__(
        self,
        engine: Engine,
        telemetry: Telemetry,
        *,
        unknown_max_s: float,
        held_max_s: float | None = None,
        meet: Callable[[BaseException], None] = _unmoved,
    ) -> None:
        self.held_max_s = held_max_s
        self._engine = engine
        self._telemetry = telemetry
        self._unknown_max_s = unknown_max_s
        self._meet = meet
        self._store_is_away = False

    def decide(self, attempt: Attempt, error: BaseException, *, still_ours: bool = False) -> Outcome | None:
        """What a failed attempt becomes. None: the job is not ours any more, and nothing is written."""
        self._meet(error)
        claimed = attempt.claimed
        if attempt.interrupt is Interrupt.LOST or (isinstance(error, LeaseLost) and not still_ours):
            return None
        if isinstance(error, NoThread):
            return Released(str(error), NO_THREAD_S)
        stopped = isinstance(error, asyncio.CancelledError | CancelRequested)
        if stopped and attempt.interrupt is Interrupt.CANCEL:
            return Stopped("the handler stopped")
        if stopped and attempt.interrupt is Interrupt.SHUTDOWN:
            return Released("the worker shut down")
        timed_out = attempt.interrupt is Interrupt.TIMEOUT and (stopped or isinstance(error, AttemptTimeout))
        if timed_out or isinstance(error, OutOfTime):
            error = timeout_error(attempt).with_traceback(error.__traceback__)
        if attempt.interrupt is Interrupt.HELD and (stopped or isinstance(error, TransactionMisuse)):
            error = held_error(self.held_max_s).with_traceback(error.__traceback__)
        return after_failure(
            rule_of(attempt),
            error,
            claimed.failures,
            claimed.attempts_max,
            claimed.snoozes,
            claimed.snoozes_max,
            random.random,
            datetime.now(UTC),
        )

    def decide_fault(self, attempt: Attempt, error: Exception) -> Outcome:
        """The job must not hang on a fault of ours, nor run again and again for nothing because of it."""
        self._meet(error)
        if not attempt.started and (is_trouble(error) or is_shortage(error)):
            log.warning("job %s was not started: %s", attempt.claimed.id, error)
            return Released(said_of(error)[:500])
        log.error("job %s met a fault of the worker", attempt.claimed.id, exc_info=error)
        self._telemetry.counters.add("worker_faults")
        return Failed(describe(error, FAULT_CODE))

    async def decide_unreadable(
        self, claimed: Claimed, error: ArgumentsTooNew | SealKeyUnknown
    ) -> Released | Failed:
        """Its arguments are newer than this worker's code, or sealed under a key that it does not have: it waits for
        the deploy, or the key, to reach a worker.

        It is given back uncounted, each time for longer; after `unknown_max_s` of that it fails. That counts from the
        first time since an attempt last ran to its end: an earlier deploy is another story.
        """
        before = await self._engine.arun(store.releases(claimed.id, reason=error.code))
        if before.since_s > self._unknown_max_s:
            return Failed(describe(error, UNREADABLE_CODES[type(error)]))
        delay_s = min(2.0 ** min(before.count, DOUBLINGS_MAX), UNREADABLE_S_MAX)
        log.warning("job %s (%s) is released for %g s: %s", claimed.id, claimed.name, delay_s, error)
        return Released(f"{error.code} {error.what}", delay_s)

    async def decide_away(self, claimed: Claimed, error: StoreUnavailable) -> Released:
        """The store of its arguments is away: it is given back uncounted, each time for longer, until that answers.

        An outage is told once.
        """
        if not self._store_is_away:
            log.warning("jobs with large arguments are released until their store answers: %s", error)
        self._store_is_away = True
        before = await self._engine.arun(store.releases(claimed.id, reason=error.code))
        delay_s = min(2.0 ** min(before.count, DOUBLINGS_MAX), AWAY_S_MAX)
        return Released(f"{error.code} {error.what}", delay_s)

    def store_answers(self) -> None:
        """The store of large payloads is there: the next outage is told again."""
        self._store_is_away = False

    def decide_refused(self, attempt: Attempt, error: PayloadAltered | PayloadMissing) -> Failed:
        """Its arguments are gone, or not what was stored: it fails at once, counted, and is never run with others."""
        claimed = attempt.claimed
        log.error("job %s (%s) is not run: %s", claimed.id, claimed.name, error)
        if isinstance(error, PayloadMissing):
            self._telemetry.counters.add("payloads_missing")
            return Failed(describe(error, MISSING_CODE))
        self._telemetry.counters.add("payloads_altered")
        self._telemetry.emit(Fact.PAYLOAD_ALTERED, job_id=claimed.id, what="arguments")
        return Failed(describe(error, ALTERED_CODE))

    async def look_up(self, attempt: Attempt, ours: Callable[[], Outcome | None]) -> Decision:
        """Nobody here knows whether the job is still ours, or done already: read until it is clear.

        `ours` says what becomes of it if it is.
        """
        claimed = attempt.claimed
        while True:
            try:
                fence = (await self._engine.arun(store.read_fences([claimed.id]))).get(claimed.id)
            except Exception as trouble:
                if not is_trouble(trouble):
                    raise
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            if fence is None or fence.attempt != claimed.attempt:
                return None
            if fence.state is State.SUCCEEDED:
                return Committed(MovedJob(claimed.id, True))
            if fence.state is not State.RUNNING or fence.holder != attempt.holder:
                return None
            return ours()


def rule_of(attempt: Attempt) -> RetryRule:
    """How the job meets failures: as its handler says, with the backoff of the submit if there is one."""
    try:
        backoff = backoff_of(bytes(attempt.claimed.options))
        return attempt.handler.rule if backoff is None else replace(attempt.handler.rule, backoff=backoff)
    except ConfigError as error:
        log.warning(
            "job %s has unreadable options (%s); its handler's backoff is used", attempt.claimed.id, error
        )
        return attempt.handler.rule


def timeout_error(attempt: Attempt) -> AttemptTimeout:
    """The error of an attempt that ran out of time."""
    return AttemptTimeout(
        f"the attempt ran longer than its {attempt.timeout_s:g} s",
        "timeout_s bounds one attempt; it counts as a failure",
        "raise timeout_s, or split the work",
    )


def held_error(limit_s: float | None) -> TransactionMisuse:
    """The error of an attempt that kept the one writer of a SQLite file waiting."""
    return TransactionMisuse(
        f"job.transaction() was open for more than {limit_s or 0.0:g} s and was rolled back",
        "SQLite has one writer, so all others wait for this transaction",
        "do the slow work first, then open the transaction and write",
    )
