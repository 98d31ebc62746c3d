"""From how an attempt ended to what its job becomes: by the error, by what the attempt was asked, by reading."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from fencerow.core.db.engine import Engine
from fencerow.core.db.trouble import is_trouble
from fencerow.core.errors import AttemptTimeout, CancelRequested, ConfigError, LeaseLost, TransactionMisuse
from fencerow.core.model.backoff import backoff_of
from fencerow.core.model.outcome import Outcome, Released, Stopped
from fencerow.core.model.retry import RetryRule, after_failure
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.finish import Moved
from fencerow.core.worker.attempt import Attempt, Interrupt, OutOfTime
from fencerow.core.worker.threads import NoThread

log = logging.getLogger("fencerow.worker")

LOOK_AGAIN_S = 0.2
NO_THREAD_S = 1.0  # until a job that could not begin may be claimed again


@dataclass(frozen=True)
class Committed:
    """The success was committed inside `job.transaction()`; there is nothing left to acknowledge."""

    moved: Moved


Verdict = Outcome | Committed | None  # None: the job is not ours any more, and nothing is written


class Judge:
    """Decides what attempts become. `held_max_s` is how long a transaction may be open, if others wait for it."""

    def __init__(self, engine: Engine, held_max_s: float | None) -> None:
        self._engine = engine
        self._held_max_s = held_max_s

    def judged(self, attempt: Attempt, error: BaseException, *, still_ours: bool = False) -> Outcome | None:
        """What a failed attempt becomes. None: the job is not ours any more, and nothing is written."""
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
            error = held_error(self._held_max_s).with_traceback(error.__traceback__)
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

    async def looked_up(self, attempt: Attempt, ours: Callable[[], Outcome | None]) -> Verdict:
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
                return Committed(Moved(claimed.id, True))
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
        "SQLite has one writer: everybody else waits for this transaction",
        "do the slow work first, then open the transaction and write",
    )
