"""One attempt as a short pipeline: may it start, decode, run, judge, report.

Slots are long-lived tasks. A slot is free as soon as it has handed the outcome to the acker; it never
waits for the database on the happy path.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fencerow.db.engine import Engine
from fencerow.db.trouble import is_trouble
from fencerow.errors import (
    ArgumentsTooNew,
    AttemptTimeout,
    CancelRequested,
    ConfigError,
    LeaseLost,
    OutcomeUnknown,
    TransactionMisuse,
)
from fencerow.model.outcome import Failed, Outcome, Released, Retried, Stopped, Succeeded
from fencerow.model.retry import RetryRule, after_failure, describe
from fencerow.model.state import State
from fencerow.model.stored_options import args_version_of, backoff_of
from fencerow.store import store
from fencerow.store.finish import Moved
from fencerow.telemetry import Event, Telemetry
from fencerow.worker.acker import Acker, facts
from fencerow.worker.attempt import Attempt, Interrupt, lease_lost, thread_raiser
from fencerow.worker.context import Job
from fencerow.worker.failures import log_failure
from fencerow.worker.lease import Lease
from fencerow.worker.newer import given_back
from fencerow.worker.stepping import InContext
from fencerow.worker.threads import Striker, Threads

log = logging.getLogger("fencerow.worker")

RunMiddleware = Callable[[Job, Callable[[], Awaitable[Any]]], Awaitable[Any]]


@dataclass(frozen=True)
class Committed:
    """The success was committed inside `job.transaction()`; there is nothing left to acknowledge."""

    moved: Moved


class Executor:
    """Runs attempts in slots and hands their outcomes to the acker."""

    def __init__(
        self,
        engine: Engine,
        lease: Lease,
        acker: Acker,
        telemetry: Telemetry,
        middleware: Sequence[RunMiddleware],
        *,
        kill_s: float,
        unknown_max_s: float,
        held_max_s: float | None = None,
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._acker = acker
        self._telemetry = telemetry
        self._middleware = tuple(middleware)
        self._kill_s = kill_s
        self._held_max_s = held_max_s
        self._unknown_max_s = unknown_max_s
        self._threads = Threads("fencerow-handler")
        self._loop = asyncio.get_running_loop()
        self.abandoned_count = 0

    def close(self) -> None:
        self._threads.close()

    async def run(self, attempt: Attempt, slot_lost: Callable[[], None]) -> None:
        """Run one attempt to its outcome. `slot_lost` is called when the slot's handler had to be given up."""
        outcome: Outcome | Committed | None
        try:
            outcome = await self._outcome(attempt, slot_lost)
        except LeaseLost:
            outcome = None
        except Exception as error:
            outcome = self._unrun(attempt, error)
        if attempt.abandoned:
            return  # it was reported when it was given up
        attempt.finish()
        self._report(attempt, outcome)

    async def _outcome(self, attempt: Attempt, slot_lost: Callable[[], None]) -> Outcome | Committed | None:
        refused = self._refused_start(attempt)
        if refused is not None:
            return refused
        text = attempt.claimed.inline_args
        if text is None:
            text = await self._fetched_args(attempt)
            refused = self._refused_start(attempt)  # a good deal may have happened while they came
            if refused is not None:
                return refused
        try:
            args, kwargs = self._decoded(attempt, text)
        except ArgumentsTooNew as error:
            return await given_back(self._engine, attempt.claimed, error, self._unknown_max_s)
        except Exception as error:
            return self._judged(attempt, error)
        return await self._called(attempt, args, kwargs, slot_lost)

    def _unrun(self, attempt: Attempt, error: Exception) -> Outcome:
        """The job must not hang on a fault of ours, nor run again and again for nothing because of it."""
        if not attempt.started and is_trouble(error):
            log.warning("job %s was not started: %s", attempt.claimed.id, error)
            return Released(f"{type(error).__name__}: {error}"[:500])
        log.error("job %s met a fault of the worker", attempt.claimed.id, exc_info=error)
        self._telemetry.counters.add("worker_faults")
        return Failed(describe(error, "worker_fault"))

    def _refused_start(self, attempt: Attempt) -> Outcome | None:
        """Nothing is started past the lease's deadline, and nothing that was asked to end.

        Raises:
            LeaseLost: the registration under which it was claimed is over.
        """
        ours = self._lease.holder == attempt.holder
        if ours and attempt.interrupt is None and self._lease.holds():
            return None
        if attempt.interrupt is Interrupt.LOST or not ours:
            raise lease_lost(attempt.claimed.id, attempt.claimed.attempt)
        if attempt.interrupt is Interrupt.CANCEL:
            return Stopped("cancelled before it started")
        if attempt.interrupt is not None:
            return Released(f"asked to end before it started ({attempt.interrupt})")
        return Released("the lease was not renewed in time")

    def _decoded(self, attempt: Attempt, text: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        version = args_version_of(bytes(attempt.claimed.options))
        return attempt.handler.arguments.decode(text, version)

    async def _fetched_args(self, attempt: Attempt) -> bytes:
        claimed = attempt.claimed
        text = await self._engine.arun(
            store.fetch_args(claimed.id, holder=attempt.holder, attempt=claimed.attempt)
        )
        if text is None:
            raise lease_lost(claimed.id, claimed.attempt)
        return text.encode()

    async def _called(
        self, attempt: Attempt, args: tuple[Any, ...], kwargs: dict[str, Any], slot_lost: Callable[[], None]
    ) -> Outcome | Committed | None:
        job = Job(attempt, self._engine, self._loop, self._held_max_s)
        parameter = attempt.handler.job_parameter
        given = kwargs if parameter is None else {**kwargs, parameter: job}
        context = copy_context()
        give_up = partial(self._give_up, attempt, slot_lost)
        task = asyncio.current_task()
        assert task is not None
        call: Callable[[], Awaitable[Any]]
        if attempt.handler.is_async:
            attempt.begin(partial(_cancel, task), give_up, kill_s=self._kill_s)
            call = partial(attempt.handler.function, *args, **given)
        else:
            striker = Striker()
            attempt.begin(thread_raiser(striker), give_up, kill_s=self._kill_s)
            call = partial(self._thread_call, attempt, job, args, given, striker)
        for middleware in reversed(self._middleware):
            call = partial(middleware, job, call)
        return await self._settled(attempt, job, context, call, task)

    async def _settled(
        self,
        attempt: Attempt,
        job: Job,
        context: Context,
        call: Callable[[], Awaitable[Any]],
        task: asyncio.Task[Any],
    ) -> Outcome | Committed | None:
        """Run the handler inside its middleware and turn whatever comes out into an outcome."""
        error: BaseException | None = None
        value: Any = None
        try:
            value = await InContext(context, _as_coroutine(call), attempt.limit_time)
        except asyncio.CancelledError as raised:
            if attempt.interrupt is None and task.cancelling():
                raise  # the slot itself is being ended
            error = raised
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            error = raised
        # The handler is over. What follows is ours: an interrupt that came now would strike a commit, or the slot.
        attempt.finish()
        _forgive(task)
        if error is None:
            try:
                return await self._succeeded(attempt, job, value)
            except Exception as raised:
                error = raised
        return await self._failed(attempt, job, error)

    async def _failed(self, attempt: Attempt, job: Job, error: BaseException) -> Outcome | Committed | None:
        transaction = job.opened_transaction
        if transaction is not None:
            await transaction.aroll_back(error)
            if transaction.moved is not None:
                self._telemetry.counters.add("middleware_errors")
                log.error("middleware of job %s failed after its commit", job.id, exc_info=error)
                return Committed(transaction.moved)
        in_doubt = isinstance(error, OutcomeUnknown) and transaction is not None and transaction.in_doubt
        # A handler may raise LeaseLost of its own accord; only the database knows whether it is true.
        unsure = isinstance(error, LeaseLost) and attempt.interrupt is not Interrupt.LOST
        if (in_doubt or unsure) and not attempt.abandoned:
            return await self._looked_up(attempt, error)
        return self._judged(attempt, error)

    async def _thread_call(
        self, attempt: Attempt, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any], striker: Striker
    ) -> Any:
        context = copy_context()

        def call() -> Any:
            try:
                value = context.run(attempt.handler.function, *args, **kwargs)
                transaction = job.opened_transaction
                if transaction is not None and transaction.is_open:
                    encoded = attempt.handler.result.encode(value).decode()
                    striker.disarm()  # no interrupt may strike the commit
                    # Committed on the thread that opened it, before the middleware unwinds.
                    transaction.commit(encoded)
                return value
            except BaseException as error:
                striker.disarm()
                if job.opened_transaction is not None:
                    job.opened_transaction.roll_back(error)
                raise

        return await self._threads.submit(call, striker)

    async def _succeeded(self, attempt: Attempt, job: Job, value: Any) -> Outcome | Committed:
        transaction = job.opened_transaction
        if transaction is not None and transaction.moved is not None:
            return Committed(transaction.moved)
        encoded = attempt.handler.result.encode(value)
        if transaction is not None and transaction.is_open:
            await transaction.acommit(encoded.decode())
            assert transaction.moved is not None
            return Committed(transaction.moved)
        return Succeeded(encoded)

    async def _looked_up(self, attempt: Attempt, error: BaseException) -> Outcome | Committed | None:
        """Nobody here knows whether the job is still ours, or done already: read until it is clear."""
        claimed = attempt.claimed
        while True:
            try:
                fence = (await self._engine.arun(store.read_fences([claimed.id]))).get(claimed.id)
            except Exception as trouble:
                if not is_trouble(trouble):
                    raise
                await asyncio.sleep(0.2)
                continue
            if fence is None or fence.attempt != claimed.attempt:
                return None
            if fence.state is State.SUCCEEDED:
                return Committed(Moved(claimed.id, True))
            if fence.state is not State.RUNNING or fence.holder != attempt.holder:
                return None
            return self._judged(attempt, error, still_ours=True)

    def _judged(self, attempt: Attempt, error: BaseException, *, still_ours: bool = False) -> Outcome | None:
        """What a failed attempt becomes. None: the job is not ours any more, and nothing is written."""
        claimed = attempt.claimed
        if attempt.interrupt is Interrupt.LOST or (isinstance(error, LeaseLost) and not still_ours):
            return None
        stopped = isinstance(error, asyncio.CancelledError | CancelRequested)
        if stopped and attempt.interrupt is Interrupt.CANCEL:
            return Stopped("the handler stopped")
        if stopped and attempt.interrupt is Interrupt.SHUTDOWN:
            return Released("the worker shut down")
        if attempt.interrupt is Interrupt.TIMEOUT and (stopped or isinstance(error, AttemptTimeout)):
            error = timeout_error(attempt).with_traceback(error.__traceback__)
        if attempt.interrupt is Interrupt.HELD and (stopped or isinstance(error, TransactionMisuse)):
            error = held_error(self._held_max_s).with_traceback(error.__traceback__)
        return after_failure(
            self._rule(attempt),
            error,
            claimed.failures,
            claimed.attempts_max,
            claimed.snoozes,
            claimed.snoozes_max,
            random.random,
            datetime.now(UTC),
        )

    def _rule(self, attempt: Attempt) -> RetryRule:
        try:
            backoff = backoff_of(bytes(attempt.claimed.options))
            return attempt.handler.rule if backoff is None else replace(attempt.handler.rule, backoff=backoff)
        except ConfigError as error:
            log.warning(
                "job %s has unreadable options (%s); its handler's backoff is used", attempt.claimed.id, error
            )
            return attempt.handler.rule

    def _give_up(self, attempt: Attempt, slot_lost: Callable[[], None]) -> None:
        """Go on without a handler that ignores its end. What it still does, the fence refuses."""
        self.abandoned_count += 1
        self._telemetry.counters.add("handlers_given_up")
        log.error(
            "job %s (%s) attempt %d did not end when asked (%s) and was given up; it may still be running here",
            attempt.claimed.id,
            attempt.claimed.name,
            attempt.claimed.attempt,
            attempt.interrupt,
        )
        error: BaseException = CancelRequested("the handler ignored its end and was given up")
        self._report(attempt, self._judged(attempt, error))
        slot_lost()

    def _report(self, attempt: Attempt, outcome: Outcome | Committed | None) -> None:
        duration_s = time.monotonic() - attempt.started if attempt.started else 0.0
        if outcome is None:
            log.warning(
                "job %s (%s) attempt %d lost its lease; its outcome is dropped",
                attempt.claimed.id,
                attempt.claimed.name,
                attempt.claimed.attempt,
            )
            self._acker.forget(attempt)
            self._telemetry.counters.add("leases_lost")
            self._telemetry.emit(Event.LEASE_LOST, **facts(attempt))
        elif isinstance(outcome, Committed):
            self._acker.committed(attempt, outcome.moved, duration_s)
        else:
            if not isinstance(outcome, Succeeded) and isinstance(outcome, Failed | Retried):
                log_failure(attempt.claimed, outcome, self._telemetry)
            self._acker.put(attempt, outcome, duration_s)


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


async def _as_coroutine(call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


def _cancel(task: asyncio.Task[Any], _why: Interrupt) -> None:
    """Raise in the slot's task, which runs the handler."""
    task.cancel()


def _forgive(task: asyncio.Task[Any]) -> None:
    """The cancel was meant for the handler, not for the slot that ran it."""
    while task.cancelling():
        task.uncancel()
