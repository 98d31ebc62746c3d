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
from fencerow.errors import AttemptTimeout, CancelRequested, LeaseLost, OutcomeUnknown
from fencerow.model.backoff import Backoff
from fencerow.model.outcome import Failed, Outcome, Released, Retried, Stopped, Succeeded
from fencerow.model.retry import RetryRule, after_failure
from fencerow.store import store
from fencerow.store.finish import Moved
from fencerow.telemetry import Event, Telemetry
from fencerow.worker.acker import Acker, facts
from fencerow.worker.attempt import Attempt, Interrupt, lease_lost, thread_raiser
from fencerow.worker.context import Job
from fencerow.worker.failures import log_failure
from fencerow.worker.lease import Lease
from fencerow.worker.stepping import InContext
from fencerow.worker.threads import Threads

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
        raise_s: float,
        kill_s: float,
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._acker = acker
        self._telemetry = telemetry
        self._middleware = tuple(middleware)
        self._raise_s = raise_s
        self._kill_s = kill_s
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
            # A fault of ours or trouble with the database between claim and start: the job must not hang on it.
            log.exception("job %s could not be run", attempt.claimed.id)
            outcome = Released(f"{type(error).__name__}: {error}")
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
        try:
            args, kwargs = attempt.handler.arguments.decode(text)
        except Exception as error:
            return self._judged(attempt, error)
        return await self._called(attempt, args, kwargs, slot_lost)

    def _refused_start(self, attempt: Attempt) -> Outcome | None:
        """Nothing is started past the lease's deadline, and nothing that was asked to end.

        Raises:
            LeaseLost: the registration under which it was claimed is over.
        """
        if attempt.interrupt is Interrupt.LOST or self._lease.holder != attempt.holder:
            raise lease_lost(attempt.claimed.id, attempt.claimed.attempt)
        if attempt.interrupt is Interrupt.CANCEL:
            return Stopped("cancelled before it started")
        if attempt.interrupt is not None:
            return Released(f"asked to end before it started ({attempt.interrupt})")
        if not self._lease.holds():
            return Released("the lease was not renewed in time")
        return None

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
        job = Job(attempt, self._engine, self._loop)
        parameter = attempt.handler.job_parameter
        given = kwargs if parameter is None else {**kwargs, parameter: job}
        context = copy_context()
        run = self._async_call if attempt.handler.is_async else self._thread_call
        ident: list[int] = []
        attempt.begin(
            self._raiser(attempt, ident), partial(self._give_up, attempt, slot_lost), kill_s=self._kill_s
        )
        call: Callable[[], Awaitable[Any]] = partial(run, attempt, job, args, given, ident)
        for middleware in reversed(self._middleware):
            call = partial(middleware, job, call)
        return await self._settled(attempt, job, context, call)

    async def _settled(
        self, attempt: Attempt, job: Job, context: Context, call: Callable[[], Awaitable[Any]]
    ) -> Outcome | Committed | None:
        """Run the handler inside its middleware and turn whatever comes out into an outcome."""
        task = asyncio.current_task()
        try:
            value = await InContext(context, _as_coroutine(call))
            return await self._succeeded(attempt, job, value)
        except asyncio.CancelledError as error:
            if attempt.interrupt is None and task is not None and task.cancelling():
                raise  # the slot itself is being ended
            _forgive(task)
            await _roll_back(job, error)
            return self._judged(attempt, error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            await _roll_back(job, error)
            if (
                isinstance(error, OutcomeUnknown)
                and job._transaction is not None
                and job._transaction.in_doubt
            ):
                return await self._looked_up(attempt, error)
            return self._judged(attempt, error)

    async def _async_call(
        self, attempt: Attempt, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any], ident: list[int]
    ) -> Any:
        return await attempt.handler.function(*args, **kwargs)

    async def _thread_call(
        self, attempt: Attempt, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any], ident: list[int]
    ) -> Any:
        context = copy_context()

        def call() -> Any:
            try:
                value = context.run(attempt.handler.function, *args, **kwargs)
                transaction = job._transaction
                if transaction is None or not transaction.is_open:
                    return value
                # Committed on the thread that opened it, before the middleware unwinds.
                return Committed(transaction.commit(attempt.handler.result.encode(value).decode()))
            except BaseException as error:
                if job._transaction is not None:
                    job._transaction.roll_back(error)
                raise
            finally:
                ident.clear()

        return await self._threads.submit(call, ident.append)

    async def _succeeded(self, attempt: Attempt, job: Job, value: Any) -> Outcome | Committed:
        if isinstance(value, Committed):
            return value
        encoded = attempt.handler.result.encode(value)
        transaction = job._transaction
        if transaction is not None and transaction.is_open:
            return Committed(await transaction.acommit(encoded.decode()))
        return Succeeded(encoded)

    async def _looked_up(self, attempt: Attempt, error: OutcomeUnknown) -> Outcome | Committed | None:
        """The commit of `job.transaction()` was sent and no answer came: read until it is clear what happened."""
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
            if fence.state == "succeeded":
                return Committed(Moved(claimed.id, True))
            return self._judged(attempt, error)

    def _judged(self, attempt: Attempt, error: BaseException) -> Outcome | None:
        """What a failed attempt becomes. None: the job is not ours any more, and nothing is written."""
        claimed = attempt.claimed
        if isinstance(error, LeaseLost) or attempt.interrupt is Interrupt.LOST:
            return None
        stopped = isinstance(error, asyncio.CancelledError | CancelRequested)
        if stopped and attempt.interrupt is Interrupt.CANCEL:
            return Stopped("the handler stopped")
        if stopped and attempt.interrupt is Interrupt.SHUTDOWN:
            return Released("the worker shut down")
        if attempt.interrupt is Interrupt.TIMEOUT and (stopped or isinstance(error, AttemptTimeout)):
            error = timeout_error(attempt).with_traceback(error.__traceback__)
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
        options = bytes(attempt.claimed.options)
        if options == b"null":
            return attempt.handler.rule
        return replace(attempt.handler.rule, backoff=Backoff.from_json(options))

    def _raiser(self, attempt: Attempt, ident: list[int]) -> Callable[[Interrupt], None]:
        if not attempt.handler.is_async:
            return thread_raiser(lambda: ident[0] if ident else None)
        task = asyncio.current_task()
        assert task is not None

        def raise_in(_why: Interrupt) -> None:
            task.cancel()

        return raise_in

    def _give_up(self, attempt: Attempt, slot_lost: Callable[[], None]) -> None:
        """Go on without a handler that ignores its end. What it still does, the fence refuses."""
        self.abandoned_count += 1
        self._telemetry.counters.add("handlers_given_up")
        log.error(
            "job %s (%s) attempt %d ignored its end for %.0f s and was given up; it may still be running here",
            attempt.claimed.id,
            attempt.claimed.name,
            attempt.claimed.attempt,
            self._kill_s,
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
            if isinstance(outcome, Failed | Retried):
                log_failure(attempt.claimed, outcome, self._telemetry)
            self._acker.put(attempt, outcome, duration_s)


def timeout_error(attempt: Attempt) -> AttemptTimeout:
    """The error of an attempt that ran out of time."""
    return AttemptTimeout(
        f"the attempt ran longer than its {attempt.timeout_s:g} s",
        "timeout_s bounds one attempt; it counts as a failure",
        "raise timeout_s, or split the work",
    )


async def _as_coroutine(call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


async def _roll_back(job: Job, error: BaseException) -> None:
    if job._transaction is not None:
        await job._transaction.aroll_back(error)


def _forgive(task: asyncio.Task[Any] | None) -> None:
    """The cancel was meant for the handler, not for the slot that ran it."""
    while task is not None and task.cancelling():
        task.uncancel()
