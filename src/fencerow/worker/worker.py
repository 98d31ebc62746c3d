"""The worker: one process' loops, and the order in which they start and stop.

keeper (thread) ── lease ──┐
claimer ─→ pool ─→ slots ─→ acker          each loop: one noun, one file
reaper                     │
notifier (thread) ── hints ┘
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from fencerow.config import Config
from fencerow.db.engine import Engine
from fencerow.errors import ConfigError
from fencerow.model.outcome import Released
from fencerow.store import store
from fencerow.telemetry import Event, Telemetry
from fencerow.worker.acker import Acker
from fencerow.worker.attempt import Attempt
from fencerow.worker.batches import BatchExecutor
from fencerow.worker.building import deadline_margin_s, described, make_pools, registration
from fencerow.worker.claimer import Claimer
from fencerow.worker.claims import Claims
from fencerow.worker.death import Death, WorkerDied
from fencerow.worker.disowner import Disowner
from fencerow.worker.executor import RunMiddleware
from fencerow.worker.handler import Handler
from fencerow.worker.hearing import Hearing
from fencerow.worker.holdings import Holdings
from fencerow.worker.keeper import Keeper
from fencerow.worker.lease import Lease
from fencerow.worker.leaving import Leaving, claims_answered, drain_s, tasks_ended
from fencerow.worker.loop import Loop
from fencerow.worker.pool import Pool
from fencerow.worker.reaper import Reaper

log = logging.getLogger("fencerow.worker")

__all__ = ["Worker", "WorkerDied"]


class Worker:
    """Claims jobs of the registered names from its queues and runs them until it is stopped.

    `queues` maps a queue to slots of its own, or lists queues that share `slots`. Use it as an async
    context manager inside an application, or `run()` it as the main thing of a process.
    """

    def __init__(
        self,
        engine: Engine,
        handlers: Mapping[str, Handler],
        queues: Mapping[str, int] | Sequence[str],
        config: Config,
        telemetry: Telemetry | None = None,
        middleware: Sequence[RunMiddleware] = (),
        *,
        slots: int | None = None,
        name: str | None = None,
    ) -> None:
        if not queues:
            raise ConfigError("the worker was given no queue", "at least one is needed", "name its queues")
        self.name = name or f"{platform.node()}-{os.getpid()}"
        self.config = config
        self.telemetry = telemetry or Telemetry()
        self._engine = engine
        self._handlers = dict(handlers)
        self._queues = queues
        self._slots = slots or config.slots
        self._middleware = tuple(middleware)
        self._attempts: dict[tuple[str, int], Attempt] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._loops: list[Loop] = []
        self._slot_tasks: set[asyncio.Task[None]] = set()
        # Made here, so that a signal during the start is not lost.
        self._told, self._told_now = asyncio.Event(), asyncio.Event()
        self._started = False
        self._stopping = False
        self._over = False

    # --- life ----------------------------------------------------------------------------------------

    async def run(self, *, until_idle: bool = False) -> None:
        """Run until `request_stop`, or until nothing is due when `until_idle`. Shuts down in order.

        Raises:
            WorkerDied: a loop ended by an error. The process should end, with this as its reason.
            DatabaseError: the worker could not even register.
        """
        await self.start()
        try:
            await self._until_told(until_idle)
        finally:
            await self.stop()
        self._death.raise_reason()

    async def start(self) -> None:
        """Check the schema, register, and start the loops."""
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(store.check_schema, self._engine)
        self._build(loop)
        try:
            await asyncio.to_thread(self._keeper.start)
        except BaseException:
            self._executor.close()
            await asyncio.to_thread(self._keeper.close)
            raise
        self._unlisten = self._engine.listen(self._hearing.hear)
        for each in self._loops:
            self._tasks.append(asyncio.create_task(self._death.guard(each), name=f"fencerow-{each.name}"))
        for pool in self._pools:
            for _ in range(pool.slots):
                self._open_slot(pool)
        self._started = True
        self.telemetry.emit(Event.WORKER_STARTED, worker=self.name)
        log.info(
            "worker %s serves %s with %d jobs known", self.name, described(self._pools), len(self._handlers)
        )

    async def stop(self, *, now: bool = False) -> None:
        """Stop claiming, let what runs end, hand back what does not, write all outcomes, sign off.

        With `now`, running handlers are cancelled at once. What cannot be stopped is handed back all the
        same, uncounted, instead of being left to the lease. A second call makes the first one hurry.
        """
        if now:
            self._told_now.set()
        if not self._started or self._stopping:
            return
        self._stopping = True
        self._death.expect()
        self._claims.pause()
        self._leaving.hand_back_waiting()
        if not self._told_now.is_set():
            await self._leaving.drained(drain_s(self.config, self._handlers), self._hurried)
        self._claims.stop()
        await claims_answered(self._tasks)  # what they bring is handed back
        await self._leaving.end_running()
        await self._leaving.outcomes_written()
        await self._wind_up()

    def request_stop(self, *, now: bool = False) -> None:
        """Ask `run` to stop; safe in a signal handler of the event loop. A second time, or `now`: at once."""
        if now or self._told.is_set():
            self._told_now.set()
        self._told.set()

    async def __aenter__(self) -> Self:
        await self.start()
        self._death.own(asyncio.current_task())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._death.disown(error):
            error = None  # the cancel was ours, to say that the worker died
        await self.stop(now=error is not None)
        if error is None:
            self._death.raise_reason()

    @property
    def running(self) -> int:
        """Jobs that this worker holds now: running, waiting for a slot, or not yet confirmed."""
        return len(self._attempts)

    @property
    def holder(self) -> str | None:
        """The id of the present registration."""
        return self._lease.holder

    # --- building --------------------------------------------------------------------------------------

    def _build(self, loop: asyncio.AbstractEventLoop) -> None:
        config = self.config
        self._loop = loop
        self._death = Death(self.name, loop)
        self._lease = Lease(config.lease_s, config.renew_s)
        self._pools = make_pools(
            self._queues, self._slots, config.prefetch_s, lambda queue: self._claims.wake(queue)
        )
        self._claims = Claims([self._make_claimer(pool) for pool in self._pools], self.telemetry)
        self._hearing = Hearing(
            self._engine, self._lease, self._claims, look_now=lambda: self._keeper.look_now(), soon=self._soon
        )
        self._acker = Acker(
            self._engine,
            self.telemetry,
            on_done=self._forget,
            on_ended=self._hearing.announce_ended,
            on_queued=self._hearing.announce_queued,
        )
        self._executor = BatchExecutor(
            self._engine,
            self._lease,
            self._acker,
            self.telemetry,
            self._middleware,
            kill_s=config.cancel_kill_s,
            # SQLite has one writer: who holds it for long makes everybody's claims and outcomes wait.
            unknown_max_s=config.unknown_max_s,
            held_max_s=config.lease_s / 3 if self._engine.dialect == "sqlite" else None,
        )
        self._leaving = Leaving(self._pools, self._attempts, self._acker, kill_s=config.cancel_kill_s)
        reaper = Reaper(
            self._engine,
            self._lease,
            config,
            self.telemetry,
            actor=f"worker {self.name}",
            on_queued=self._hearing.announce_queued,
            on_ended=self._hearing.announce_ended,
        )
        disowner = Disowner(
            self._engine,
            self.telemetry,
            age_s=config.unknown_max_s,
            actor=f"worker {self.name}",
            queues=lambda: [queue for pool in self._pools for queue in pool.queues],
            on_ended=self._hearing.announce_ended,
        )
        self._loops = [
            *self._claims.loops,
            Loop("acker", self._acker.tick, self.telemetry),
            Loop("reaper", reaper.tick, self.telemetry, jitter=0.2),
            Loop("disowner", disowner.tick, self.telemetry, jitter=0.2),
        ]
        holdings = Holdings(
            self._engine,
            self._attempts,
            self._claims,
            self.telemetry,
            renew_s=config.renew_s,
            cancel_raise_s=config.cancel_raise_s,
            soon=self._soon,
            spawn=self._spawn,
            on_queued=self._hearing.announce_queued,
            on_failed=self._death.tell,
        )
        self._keeper = Keeper(
            self._engine,
            self._lease,
            holdings,
            name=self.name,
            info=registration(self._pools, self._handlers),
            renew_s=config.renew_s,
            telemetry=self.telemetry,
            ping=self._soon,
        )

    def _make_claimer(self, pool: Pool) -> Claimer:
        return Claimer(
            self._engine,
            pool,
            self._lease,
            self._handlers,
            self.telemetry,
            poll_max_s=self.config.poll_max_s,
            margin_s=deadline_margin_s(self.config),
            suspect_running=lambda: any(each.claimed.suspect for each in self._attempts.values()),
            take=lambda attempt: self._take(pool, attempt),
            give_back=lambda attempt: self._acker.put(attempt, Released("waited too long for a slot"), 0.0),
        )

    # --- jobs ------------------------------------------------------------------------------------------

    def _take(self, pool: Pool, attempt: Attempt) -> None:
        claimed = attempt.claimed
        self._attempts[claimed.id, claimed.attempt] = attempt
        if self._stopping:  # the answer to a claim that was on its way
            self._leaving.hand_back(attempt)
        else:
            pool.put(attempt)

    def _forget(self, attempt: Attempt, _duration_s: float) -> None:
        claimed = attempt.claimed
        self._attempts.pop((claimed.id, claimed.attempt), None)
        if claimed.suspect:
            self._claims.wake(claimed.queue)

    def _open_slot(self, pool: Pool) -> None:
        self._spawn(self._slot(pool), "fencerow-slot")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str | None = None) -> None:
        """Run something beside the loops; the worker dies of its error."""
        task = asyncio.create_task(work, name=name)
        self._slot_tasks.add(task)
        task.add_done_callback(self._slot_closed)

    async def _slot(self, pool: Pool) -> None:
        while not self._over:
            attempt = await pool.get()
            slot_lost = partial(self._replace_slot, pool)
            if attempt.handler.batch_max is None:
                await self._executor.run(attempt, slot_lost)
                kept, jobs = not attempt.abandoned, 1
            else:
                attempts = pool.joined(attempt)
                kept, jobs = await self._executor.run_batch(attempts, slot_lost), len(attempts)
            if not kept:
                return  # another slot has taken this one's place
            pool.done(jobs)

    def _replace_slot(self, pool: Pool) -> None:
        pool.done()
        self._open_slot(pool)

    def _slot_closed(self, task: asyncio.Task[None]) -> None:
        self._slot_tasks.discard(task)
        if self._over:
            return
        if task.cancelled():
            self._death.tell(RuntimeError("a slot was cancelled from outside"))
        elif task.exception() is not None:
            self._death.tell(task.exception())

    # --- ending ----------------------------------------------------------------------------------------

    async def _until_told(self, until_idle: bool) -> None:
        told = asyncio.create_task(self._told.wait())
        waits: set[asyncio.Future[Any]] = {told, self._death.future}
        if until_idle:
            waits.add(asyncio.create_task(self._until_idle()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits - {self._death.future}:
                each.cancel()

    async def _until_idle(self) -> None:
        """Until a look from the beginning found nothing due and nothing is held here."""
        while True:
            await asyncio.sleep(self.config.poll_min_s)
            if not self._attempts and not self._acker.backlog and self._claims.are_idle():
                return

    def _hurried(self) -> bool:
        return self._told_now.is_set() or self._death.happened()

    async def _wind_up(self) -> None:
        for loop in self._loops:
            loop.stop()
        self._over = True
        await tasks_ended({*self._tasks, *self._slot_tasks}, self.name)
        await asyncio.to_thread(self._unlisten)
        await asyncio.to_thread(self._keeper.stop)
        await asyncio.to_thread(self._engine.flush, 1.0)
        self._executor.close()
        reason = "died" if self._death.happened() else "asked to stop"
        self._death.rule_out()
        self.telemetry.emit(Event.WORKER_STOPPED, worker=self.name, reason=reason)
        log.info("worker %s has stopped", self.name)

    def _soon(self, call: Callable[[], None]) -> None:
        """Run something on the event loop, from any thread; nothing when the loop has gone."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # closed: the worker is over
