"""The one way in which a call is made that can be interrupted: of a handler, of a batch's, of one in another process.

Async handlers run on the event loop, in the task of their slot, plain ones on threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from functools import cached_property, partial
from typing import Any, TypeVar, cast

from fencerow.core.config import CoreConfig
from fencerow.core.errors import LeaseLost, OutcomeUnknown
from fencerow.core.store import store
from fencerow.core.store.running import Running, running
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.attempt import Attempt, Interrupt, OutOfTime, left_behind, thread_raiser
from fencerow.core.worker.context import Job
from fencerow.core.worker.deciding import Committed, Decider, Decision
from fencerow.core.worker.job_type import job_type
from fencerow.core.worker.middleware import Middleware
from fencerow.core.worker.on_loop import OnLoop
from fencerow.core.worker.transaction import JobTransaction
from fencerow.db.engine import Engine
from fencerow.db.main_loop import ends_process
from fencerow.db.strikes import Striker
from fencerow.db.threads import Ending, Threads

log = logging.getLogger("fencerow.worker")

T = TypeVar("T")


class Calls:
    """Makes calls. A handler that ignores its end for `kill_s` seconds is given up."""

    def __init__(
        self,
        engine: Engine,
        decider: Decider,
        telemetry: Telemetry,
        middleware: Middleware,
        *,
        kill_s: float,
        on_loop: OnLoop | None = None,
        config: CoreConfig | None = None,
    ) -> None:
        self.middleware = middleware
        self.kill_s = kill_s
        self.loop = asyncio.get_running_loop()
        self._on_loop = on_loop or OnLoop()
        self._engine = engine
        self._config = config
        self._decider = decider
        self._telemetry = telemetry
        self._threads = Threads("fencerow-handler")
        # Stands for the job of an attempt whose handler sees none, nor any middleware: nobody can ask it for anything.
        self._unseen = Job(cast("Attempt", None), engine, self.loop)

    def close(self) -> None:
        """Let the threads end."""
        self._threads.close()

    def job(self, attempt: Attempt) -> Job:
        """What the attempt's handler is given of it, with the verbs of wings."""
        held_max_s, as_stored = self._decider.held_max_s, self.middleware.as_stored
        return self._job_type(attempt, self._engine, self.loop, held_max_s, as_stored, self._config)

    @cached_property
    def _job_type(self) -> type[Job]:
        """Loaded by the first attempt whose job is seen."""
        return job_type()

    # --- a call that can be interrupted --------------------------------------------------------------

    async def interruptible(
        self,
        attempt: Attempt,
        coroutine: Coroutine[Any, Any, Any],
        give_up: Callable[[], object],
        raise_in: Callable[[Interrupt], None] | None = None,
        beside: Sequence[Attempt] = (),
    ) -> tuple[Any, BaseException | None]:
        """Await the coroutine; the attempt can be ended meanwhile, and nothing that follows.

        `raise_in` raises an exception where it runs, by default here; `give_up` goes on without it. `beside` are
        attempts of one call, and have started. Returns its value, or None and what was raised.

        Raises:
            CancelledError: the slot itself is being ended.
        """
        task = asyncio.current_task(self.loop)
        assert task is not None
        value: Any = None
        error: BaseException | None = None
        # A handler that never waits cannot be ended, so its limit is watched from its first wait on.
        attempt.begin(raise_in or partial(_cancel, task), give_up, kill_s=self.kill_s)
        try:
            value = await self._on_loop.run((attempt, *beside), coroutine)
        except asyncio.CancelledError as raised:
            if attempt.interrupt is None and task.cancelling():
                raise  # the slot itself is being ended
            error = raised
        except BaseException as raised:
            if isinstance(raised, KeyboardInterrupt) and ends_process(raised, self.loop):
                raise
            error = raised
        # The handler is over. What follows is ours: an interrupt that came now would strike a commit, or the slot.
        attempt.finish()
        while task.cancelling():
            task.uncancel()  # the cancel was meant for the handler, not for the slot that ran it
        try:
            return value, error
        finally:
            # This frame is in its traceback: all that the handler had would wait for the garbage collector.
            del error

    async def bounded(
        self, attempt: Attempt, coroutine: Coroutine[Any, Any, T]
    ) -> tuple[T | None, BaseException | None]:
        """Await what is not the handler, before it begins or after it has ended, and may take long: under the limits of
        the attempt, which keeps no trace of it but why it was interrupted. Returns as `interruptible` does."""
        task = asyncio.current_task(self.loop)
        assert task is not None
        before = attempt.started, attempt.is_over, attempt.abandoned
        answer = await self.interruptible(attempt, coroutine, task.cancel)
        attempt.started, attempt.is_over, attempt.abandoned = before
        attempt.overran = False
        return answer

    def threaded(
        self,
        attempt: Attempt,
        function: Callable[[], Any],
        give_up: Callable[[], None],
        ending: Ending[Any] | None = None,
    ) -> tuple[Callable[[], Awaitable[Any]], Callable[[], None], Callable[[Interrupt], None]]:
        """A plain function to be awaited, how one goes on without it, and how an exception is raised in it.

        `ending` ends on its thread what it has opened.
        """
        striker = Striker()
        run = partial(self._on_thread, function, striker, ending)
        return run, left_behind(striker, attempt, give_up), thread_raiser(striker)

    async def _on_thread(
        self, function: Callable[[], Any], striker: Striker, ending: Ending[Any] | None
    ) -> Any:
        # The context is copied here, so that what middleware sets in it reaches the thread.
        return await self._threads.submit(partial(copy_context().run, function), striker, ending)

    # --- of one job -----------------------------------------------------------------------------------

    async def call(
        self, attempt: Attempt, args: tuple[Any, ...], kwargs: dict[str, Any], give_up: Callable[[], None]
    ) -> Decision:
        """Run the handler to its outcome; `give_up` is called when it ignores its end."""
        handler = attempt.handler
        is_seen = handler.job_parameter is not None or self.middleware.run
        job = self.job(attempt) if is_seen else self._unseen
        given = kwargs if handler.job_parameter is None else {**kwargs, handler.job_parameter: job}
        run: Callable[[], Awaitable[Any]] = partial(handler.function, *args, **given)
        leave: Callable[[], None] = partial(_leave, job, give_up)
        raise_in: Callable[[Interrupt], None] | None = None
        if not handler.is_async:
            run, leave, raise_in = self.threaded(attempt, run, leave, partial(_end_transaction, attempt, job))
        for middleware in reversed(self.middleware.run):
            run = partial(middleware, job, run)
        value, error = await self.interruptible(attempt, _in_attempt(attempt, job, run), leave, raise_in)
        if error is None:
            try:
                if attempt.overran:
                    _refuse_late(attempt, job)
                if (transaction := job.opened_transaction) is not None:
                    return await self._committed(attempt, job, transaction, value)
                if handler.packing.waits:
                    return job.follow_ups.success(await self._stored(attempt, value))
                return job.follow_ups.success(handler.stored_result(attempt.claimed.id, value))
            except Exception as raised:
                error = raised
        return await self._failed(attempt, job, error)

    async def _committed(
        self, attempt: Attempt, job: Job, transaction: JobTransaction[Any], value: Any
    ) -> Decision:
        """What the handler did in its transaction counts together with its success."""
        if transaction.moved is None:  # else a plain handler's thread has committed it
            encoded = await self._stored(attempt, value)
            if not transaction.is_open:
                return job.follow_ups.success(encoded)
            await transaction.acommit(encoded.decode())
        assert transaction.moved is not None
        return Committed(transaction.moved, transaction.made)

    async def _stored(self, attempt: Attempt, value: Any) -> bytes:
        """A result as it is stored. One whose store keeps it waiting until the attempt must end goes into its row: the
        work is done."""
        handler, job_id = attempt.handler, attempt.claimed.id
        encoded = handler.result.encode(value)
        if not handler.packing.waits:
            return handler.packed_result(job_id, encoded)
        stored, error = await self.bounded(attempt, handler.apacked_result(job_id, encoded))
        if error is not None and attempt.interrupt is None:
            raise error
        return stored or handler.packed_result(job_id, encoded, inside=True)

    async def _failed(self, attempt: Attempt, job: Job, error: BaseException) -> Decision:
        transaction = job.opened_transaction
        if transaction is not None:
            await transaction.aroll_back(error)
            if transaction.moved is not None:
                self._telemetry.counters.add("middleware_errors")
                log.error("middleware of job %s failed after its commit", job.id, exc_info=error)
                return Committed(transaction.moved, transaction.made)
        in_doubt = isinstance(error, OutcomeUnknown) and transaction is not None and transaction.in_doubt
        # A handler may raise LeaseLost of its own accord; only the database knows whether it is true.
        unsure = isinstance(error, LeaseLost) and attempt.interrupt is not Interrupt.LOST
        if (in_doubt or unsure) and not attempt.abandoned:
            ours = partial(self._decider.decide, attempt, error, still_ours=True)
            return await self._decider.look_up(attempt, ours)
        return self._decider.decide(attempt, error)


def ran_late(attempt: Attempt) -> bool:
    """Whether its handler kept the event loop beyond its deadline: it ran out of time, though nothing told it so."""
    if not attempt.overran or attempt.interrupt is not None:
        return False
    attempt.interrupt = Interrupt.TIMEOUT
    return True


async def _in_attempt(attempt: Attempt, job: Job, run: Callable[[], Awaitable[Any]]) -> Any:
    """In here primitives know the attempt that they are used in."""
    claimed = attempt.claimed
    running.set(
        Running(
            claimed.id,
            claimed.name,
            claimed.queue,
            attempt.holder,
            claimed.attempt,
            claimed.snoozes,
            store.hold_fence,
            store.check_fence,
            job.is_committed_on,
            claimed.headers,
            job.keeps_out,
        )
    )
    try:
        value = await run()
    except BaseException:
        if job.kept is not None:
            await job.settle(failed=True)
        raise
    if job.kept is not None:
        await job.settle(failed=False)
    return value


def _cancel(task: asyncio.Task[Any], _why: Interrupt) -> None:
    """Raise in the slot's task, which runs the handler."""
    task.cancel()


def _leave(job: Job, give_up: Callable[[], None]) -> None:
    """Give a handler up, and with it what its transaction locks."""
    if job.opened_transaction is not None:
        job.opened_transaction.abandon()
    give_up()


def _refuse_late(attempt: Attempt, job: Job) -> None:
    """A success that came too late is none.

    Raises:
        OutOfTime: it did, and nothing of it is committed.
    """
    committed = job.opened_transaction is not None and job.opened_transaction.moved is not None
    if not committed and ran_late(attempt):
        raise OutOfTime


def _end_transaction(attempt: Attempt, job: Job, value: Any, error: BaseException | None) -> None:
    """On the thread that opened it, before the middleware unwinds."""
    transaction = job.opened_transaction
    if transaction is None or not transaction.is_open:
        return
    if error is not None:
        transaction.roll_back(error)
        return
    try:
        encoded = attempt.handler.stored_result(attempt.claimed.id, value).decode()
    except BaseException as unfit:
        transaction.roll_back(unfit)
        raise
    transaction.commit(encoded)
