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
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from fencerow.config import Config
from fencerow.db.connections import told
from fencerow.db.engine import Engine, arun_all
from fencerow.errors import ConfigError, OrderRefused
from fencerow.model.outcome import Released
from fencerow.model.wakeup import WakeUp
from fencerow.model.wanted import Change, Leave, Share
from fencerow.store import store
from fencerow.telemetry import Event, Telemetry
from fencerow.worker.acker import Acker
from fencerow.worker.attempt import Attempt
from fencerow.worker.building import (
    check_children,
    connections,
    deadline_margin_s,
    described,
    make_pools,
    registration,
)
from fencerow.worker.chore import Chore, EndingChore, FinishingChore, HearingChore, OwnChore
from fencerow.worker.claimer import Claimer
from fencerow.worker.claims import Claims
from fencerow.worker.control import Control
from fencerow.worker.death import Death, WorkerDied
from fencerow.worker.handler import Handler
from fencerow.worker.hearing import Hearing
from fencerow.worker.holdings import Holdings
from fencerow.worker.keeper import Keeper
from fencerow.worker.lease import Lease
from fencerow.worker.leaving import Leaving, claims_answered, drain_s, tasks_ended
from fencerow.worker.loop import Loop
from fencerow.worker.middleware import NO_MIDDLEWARE, Middleware
from fencerow.worker.pool import Pool
from fencerow.worker.slots import Slots
from fencerow.worker.upkeep import upkeep_loops
from fencerow.worker.workplace import Workplace

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
        middleware: Middleware = NO_MIDDLEWARE,
        *,
        slots: int | None = None,
        name: str | None = None,
        chores: Sequence[Chore] = (),
    ) -> None:
        if not queues:
            raise ConfigError("the worker was given no queue", "at least one is needed", "name its queues")
        self.name = name or f"{platform.node()}-{os.getpid()}"
        self.config = config
        self.telemetry = telemetry or Telemetry()
        self._engine = engine
        self._handlers = dict(handlers)
        self._queues = queues
        self._slots_shared = slots or config.slots
        self._middleware = middleware
        self._chores = [each.for_worker() if isinstance(each, OwnChore) else each for each in chores]
        self._ending: list[asyncio.Task[None]] = []
        check_children(self._handlers, config)
        self._attempts: dict[tuple[str, int], Attempt] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._loops: list[Loop] = []
        # Made here, so that a signal during the start is not lost.
        self._told, self._told_now = asyncio.Event(), asyncio.Event()
        self._stopped = asyncio.Event()
        self._in_run = False
        self._leave_by: float | None = None  # monotonic seconds: an order's own limit
        self._left: asyncio.Task[None] | None = None
        self._started = False
        self._stopping = False

    # --- life ----------------------------------------------------------------------------------------

    async def run(self, *, until_idle: bool = False) -> None:
        """Run until `request_stop`, or until nothing is due when `until_idle`. Shuts down in order.

        Raises:
            WorkerDied: a loop ended by an error. The process should end, with this as its reason.
            DatabaseError: the worker could not even register.
        """
        self._in_run = True
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
            self._workplace.abandon()
            await asyncio.to_thread(self._keeper.close)
            raise
        self._unlisten = self._engine.listen(self._hearing.hear)
        for each in self._loops:
            self._tasks.append(asyncio.create_task(self._death.guard(each), name=f"fencerow-{each.name}"))
        for pool in self._pools:
            self._slots.fill(pool)
        self._started = True
        self.telemetry.emit(Event.WORKER_STARTED, worker=self.name)
        log.info(
            "worker %s serves %s with %d jobs known", self.name, described(self._pools), len(self._handlers)
        )
        if opens := connections(self._engine, self._handlers.values()):
            log.info("worker %s opens at most %s", self.name, told(opens))

    async def stop(self, *, now: bool = False) -> None:
        """Stop claiming, let what runs end, hand back what does not, write all outcomes, sign off.

        With `now`, running handlers are cancelled at once. What cannot be stopped is handed back all the
        same, uncounted, instead of being left to the lease. A second call makes the first one hurry.
        """
        if now:
            self._told_now.set()
        if not self._started or self._stopping:
            return
        self._stopping = self._control.leaving = True
        self._death.expect()
        self._claims.pause()
        self._end_chores()
        self._leaving.hand_back_waiting()
        if not self._told_now.is_set():
            await self._leaving.drained(drain_s(self.config, self._handlers), self._hurried)
        self._claims.stop()
        await claims_answered(self._tasks)  # what they bring is handed back
        await self._leaving.end_running()
        await self._leaving.outcomes_written()
        await asyncio.gather(*self._ending)
        await self._wind_up()

    def request_stop(self, *, now: bool = False) -> None:
        """Ask `run` to stop; safe in a signal handler of the event loop. A second time, or `now`: at once."""
        if now or self._told.is_set():
            self._told_now.set()
        self._told.set()

    async def change(
        self,
        *,
        slots: int | None = None,
        queues: Mapping[str, int | None] | None = None,
        remove: Sequence[str] = (),
        paused: bool | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> int:
        """Change what this worker serves while it runs; returns the order's version. It holds when this returns.

        `slots`: of queues that share them. `queues`: served from now on, with slots of their own, or with None in
        the one share that there is. The same order, on the same row, as an operator's from elsewhere.

        Raises:
            OrderRefused: somebody changed it first, or it is leaving, or it has no registration just now.
            InvalidInput: the change cannot be made to what it serves.
        """
        change = Change(slots=slots, queues=queues or {}, remove=remove, paused=paused)
        holder = self.holder if self._started else None
        if holder is None:
            raise OrderRefused(
                f"worker {self.name} has no registration", "it has not started, or stopped", "start it first"
            )
        who = actor or self.config.actor or f"worker {self.name}"
        order = await arun_all(self._engine, store.ordering(holder, change, actor=who, reason=reason))
        self._control.carry_out(holder, order.version, order.wanted)
        return order.version

    async def wait_stopped(self) -> None:
        """Wait until the worker has ended, which an operator may order from elsewhere."""
        await self._stopped.wait()

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
        if self._left is not None:
            await self._left
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
        self._pools = make_pools(self._queues, self._slots_shared, config.prefetch_s, self._wake_claimers)
        self._claims = Claims(self.telemetry)
        self._control = Control(
            self.name,
            self._pools,
            self._attempts,
            self._claims,
            self.telemetry,
            serve=self._serve,
            resized=lambda pool: self._slots.fill(pool),
            hand_back=lambda attempt, why: self._leaving.hand_back(attempt, why),
            leave=self._leave,
            look_now=lambda: self._keeper.look_now(),
            soon=self._soon,
        )
        self._hearing = Hearing(
            self._engine,
            self._lease,
            self._claims,
            look_now=lambda: self._keeper.look_now(),
            soon=self._soon,
            tell=self._tell_chores,
        )
        self._acker = Acker(
            self._engine,
            self.telemetry,
            on_done=self._forget,
            on_ended=self._hearing.announce_ended,
            on_queued=self._hearing.announce_queued,
        )
        self._workplace = Workplace(
            self._engine, self._lease, self._acker, self.telemetry, self._middleware, config
        )
        for pool in self._pools:
            self._claims.add(self._make_claimer(pool))
        self._slots = Slots(self._workplace, self._death, hung_max=config.hung_max)
        self._leaving = Leaving(self._pools, self._attempts, self._acker, kill_s=config.cancel_kill_s)
        upkeep = upkeep_loops(
            self._engine,
            self._lease,
            config,
            self.telemetry,
            self._hearing,
            actor=f"worker {self.name}",
            queues=lambda: [queue for pool in self._pools for queue in pool.queues],
        )
        self._chore_loops = [Loop(each.name, each.tick, self.telemetry, jitter=0.2) for each in self._chores]
        acker = Loop("acker", self._acker.tick, self.telemetry)
        self._loops = [*self._claims.loops, acker, *upkeep, *self._chore_loops]
        holdings = Holdings(
            self._engine,
            self._attempts,
            self._claims,
            self.telemetry,
            renew_s=config.renew_s,
            cancel_raise_s=config.cancel_raise_s,
            soon=self._soon,
            spawn=self._slots.spawn,
            on_queued=self._hearing.announce_queued,
            on_ended=self._hearing.announce_ended,
            on_failed=self._death.tell,
        )
        self._keeper = Keeper(
            self._engine,
            self._lease,
            holdings,
            self._control,
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
            suspects=self._workplace.suspects,
            withheld=self._workplace.is_withheld,
            take=lambda attempt: self._take(pool, attempt),
            give_back=lambda attempt: self._acker.put(attempt, Released("waited too long for a slot"), 0.0),
        )

    # --- chores ----------------------------------------------------------------------------------------

    def _tell_chores(self, message: WakeUp | None) -> None:
        for chore, loop in zip(self._chores, self._chore_loops, strict=True):
            if isinstance(chore, HearingChore) and chore.is_for(message):
                loop.wake()

    def _end_chores(self) -> None:
        for chore, loop in zip(self._chores, self._chore_loops, strict=True):
            loop.stop()
            if isinstance(chore, EndingChore):
                within_s = 0.0 if self._told_now.is_set() else self.config.cancel_kill_s
                self._ending.append(
                    asyncio.create_task(chore.end(within_s), name=f"fencerow-end-{chore.name}")
                )

    # --- jobs ------------------------------------------------------------------------------------------

    def _take(self, pool: Pool, attempt: Attempt) -> None:
        key = attempt.claimed.id, attempt.claimed.attempt
        if twice := key in self._attempts or self._slots.works_on(key):
            # The database went back behind our first claim. Two runs must not share one fence.
            self._keeper.claimed_twice(*key)
        if key in self._attempts:
            return  # what runs goes on: it is the holder again
        self._attempts[key] = attempt
        self._workplace.suspects.take(attempt)
        unwanted = self._control.refuses(attempt, pool)
        # The answer to a claim that was on its way, or a run that was given up and still writes.
        if self._stopping or twice:
            self._leaving.hand_back(attempt)
        elif unwanted is not None:
            self._leaving.hand_back(attempt, unwanted)
        else:
            pool.put(attempt)

    def _forget(self, attempt: Attempt, _duration_s: float) -> None:
        self._attempts.pop((attempt.claimed.id, attempt.claimed.attempt), None)
        if self._workplace.suspects.over(attempt):
            self._claims.wake(attempt.claimed.queue)

    def _wake_claimers(self, queue: str) -> None:
        self._claims.wake(queue)

    def _serve(self, share: Share) -> None:
        """Serve queues that nobody served here before."""
        pool = Pool(share.queues, share.slots, self.config.prefetch_s, self._wake_claimers)
        self._pools.append(pool)
        loop = self._claims.add(self._make_claimer(pool), paused=self._control.paused)
        self._loops.append(loop)
        self._tasks.append(asyncio.create_task(self._death.guard(loop), name=f"fencerow-{loop.name}"))
        self._slots.fill(pool)

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
            chores_idle = all(each.is_idle for each in self._chores if isinstance(each, FinishingChore))
            if chores_idle and not self._attempts and not self._acker.backlog and self._claims.are_idle():
                return

    def _leave(self, leave: Leave) -> None:
        """An operator wants this worker to end. A later order can only make it sooner."""
        if leave.within_s is not None:
            self._leave_by = time.monotonic() + leave.within_s
        if leave.within_s == 0:
            self._told_now.set()
        self._told.set()
        if not self._in_run and self._left is None:
            # In a `with` block nobody waits to be told.
            self._left = asyncio.create_task(self.stop(), name="fencerow-leaving")

    def _hurried(self) -> bool:
        late = self._leave_by is not None and time.monotonic() >= self._leave_by
        return late or self._told_now.is_set() or self._death.is_sudden()

    async def _wind_up(self) -> None:
        for loop in self._loops:
            loop.stop()
        self._slots.end()
        await tasks_ended({*self._tasks, *self._slots.tasks}, self.name)
        await asyncio.to_thread(self._unlisten)
        await asyncio.to_thread(self._keeper.stop)
        await asyncio.to_thread(self._engine.flush, 1.0)
        await self._workplace.close()
        reason = "died" if self._death.happened() else "asked to stop"
        self._death.rule_out()
        self.telemetry.emit(Event.WORKER_STOPPED, worker=self.name, reason=reason)
        self._stopped.set()
        log.info("worker %s has stopped", self.name)

    def _soon(self, call: Callable[[], None]) -> None:
        """Run something on the event loop, from any thread; nothing when the loop has gone."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # closed: the worker is over
