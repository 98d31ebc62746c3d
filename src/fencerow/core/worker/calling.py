"""One call of a handler in this process: with its context, its middleware, its transaction, up to its outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

from fencerow.core.db.engine import Engine
from fencerow.core.db.strikes import Striker
from fencerow.core.errors import LeaseLost, OutcomeUnknown
from fencerow.core.model.outcome import Succeeded
from fencerow.core.store import store
from fencerow.core.store.running import Running, running
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.attempt import Attempt, Interrupt, OutOfTime, left_behind, thread_raiser
from fencerow.core.worker.context import Job
from fencerow.core.worker.judging import Committed, Judge, Verdict
from fencerow.core.worker.middleware import RunMiddleware
from fencerow.core.worker.onloop import OnLoop
from fencerow.core.worker.stepping import in_context
from fencerow.core.worker.threads import Threads
from fencerow.core.worker.transaction import JobTransaction

log = logging.getLogger("fencerow.worker")


class Calls:
    """Calls handlers: async ones on the event loop, plain ones on threads."""

    def __init__(
        self,
        engine: Engine,
        judge: Judge,
        telemetry: Telemetry,
        middleware: Sequence[RunMiddleware],
        *,
        kill_s: float,
        held_max_s: float | None,
        on_loop: OnLoop | None = None,
    ) -> None:
        self.on_loop = on_loop or OnLoop()
        self._engine = engine
        self._judge = judge
        self._telemetry = telemetry
        self._middleware = tuple(middleware)
        self._kill_s = kill_s
        self._held_max_s = held_max_s
        self.threads = Threads("fencerow-handler")
        self.loop = asyncio.get_running_loop()

    def close(self) -> None:
        self.threads.close()

    async def call(
        self, attempt: Attempt, args: tuple[Any, ...], kwargs: dict[str, Any], give_up: Callable[[], None]
    ) -> Verdict:
        """Run the handler to its outcome; `give_up` is called when it ignores its end."""
        task = asyncio.current_task(self.loop)
        assert task is not None
        job = Job(attempt, self._engine, self.loop, self._held_max_s)
        call = self._begun(attempt, job, args, kwargs, give_up, task)
        error: BaseException | None = None
        value: Any = None
        try:
            step = partial(self.on_loop.step, (attempt,), attempt.deadline)
            value = await in_context(
                copy_context(), _in_attempt(attempt, job, call), step, attempt.limit_time
            )
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
                self._refuse_late(attempt, job)
                if job.opened_transaction is not None:
                    return await self._committed(attempt, job.opened_transaction, value)
                return Succeeded(attempt.handler.result.encode(value))
            except Exception as raised:
                error = raised
        return await self._failed(attempt, job, error)

    def _begun(
        self,
        attempt: Attempt,
        job: Job,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        give_up: Callable[[], None],
        task: asyncio.Task[Any],
    ) -> Callable[[], Awaitable[Any]]:
        """The call of the handler with its middleware around it; from now on the attempt can be ended."""
        handler = attempt.handler

        leave = partial(_leave, job, give_up)
        given = kwargs if handler.job_parameter is None else {**kwargs, handler.job_parameter: job}
        call: Callable[[], Awaitable[Any]]
        if handler.is_async:
            # A handler that never waits cannot be ended, so its limit is watched from its first wait on.
            attempt.begin(partial(_cancel, task), leave, kill_s=self._kill_s, limited=False)
            call = partial(handler.function, *args, **given)
        else:
            striker = Striker()
            attempt.begin(
                thread_raiser(striker),
                left_behind(striker, attempt, leave),
                kill_s=self._kill_s,
                limited=False,
            )
            call = partial(self._thread_call, attempt, job, args, given, striker)
        for middleware in reversed(self._middleware):
            call = partial(middleware, job, call)
        return call

    def _refuse_late(self, attempt: Attempt, job: Job) -> None:
        """A handler that kept the event loop beyond its deadline ran out of time, though nothing could tell it so.

        Raises:
            OutOfTime: it did, and nothing of it is committed.
        """
        committed = job.opened_transaction is not None and job.opened_transaction.moved is not None
        if attempt.overran and attempt.interrupt is None and not committed:
            attempt.interrupt = Interrupt.TIMEOUT
            raise OutOfTime

    async def _failed(self, attempt: Attempt, job: Job, error: BaseException) -> Verdict:
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
            return await self._judge.looked_up(
                attempt, lambda: self._judge.judged(attempt, error, still_ours=True)
            )
        return self._judge.judged(attempt, error)

    async def _thread_call(
        self, attempt: Attempt, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any], striker: Striker
    ) -> Any:
        context = copy_context()

        def end(value: Any, error: BaseException | None) -> None:
            # On the thread that opened it, before the middleware unwinds.
            transaction = job.opened_transaction
            if transaction is None or not transaction.is_open:
                return
            if error is not None:
                transaction.roll_back(error)
                return
            try:
                encoded = attempt.handler.result.encode(value).decode()
            except BaseException as unfit:
                transaction.roll_back(unfit)
                raise
            transaction.commit(encoded)

        call = partial(context.run, attempt.handler.function, *args, **kwargs)
        return await self.threads.submit(call, striker, end)

    async def _committed(self, attempt: Attempt, transaction: JobTransaction, value: Any) -> Verdict:
        """What the handler did in its transaction counts together with its success."""
        if transaction.moved is None:  # else a plain handler's thread has committed it
            encoded = attempt.handler.result.encode(value)
            if not transaction.is_open:
                return Succeeded(encoded)
            await transaction.acommit(encoded.decode())
        assert transaction.moved is not None
        return Committed(transaction.moved)


def running_of(attempt: Attempt, job: Job) -> Running:
    """What primitives may know of an attempt whose handler they are used in."""
    claimed = attempt.claimed

    def ends_job(connection: object) -> bool:
        transaction = job.opened_transaction
        return transaction is not None and transaction.is_on(connection)

    return Running(
        claimed.id,
        claimed.name,
        claimed.queue,
        attempt.holder,
        claimed.attempt,
        claimed.snoozes,
        store.hold_fence,
        store.check_fence,
        ends_job,
    )


def _leave(job: Job, give_up: Callable[[], None]) -> None:
    """Give a handler up, and with it what its transaction locks."""
    if job.opened_transaction is not None:
        job.opened_transaction.abandon()
    give_up()


def _cancel(task: asyncio.Task[Any], _why: Interrupt) -> None:
    """Raise in the slot's task, which runs the handler."""
    task.cancel()


async def _in_attempt(attempt: Attempt, job: Job, call: Callable[[], Awaitable[Any]]) -> Any:
    running.set(running_of(attempt, job))
    return await call()


def _forgive(task: asyncio.Task[Any]) -> None:
    """The cancel was meant for the handler, not for the slot that ran it."""
    while task.cancelling():
        task.uncancel()
