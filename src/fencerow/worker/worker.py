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
from functools import partial
from types import TracebackType
from typing import Any, Self

from fencerow.config import Config
from fencerow.db.engine import Engine
from fencerow.db.trouble import is_trouble
from fencerow.errors import ConfigError
from fencerow.model.outcome import Released
from fencerow.model.wakeup import CancelAsked, Queued, decode, encode, encode_ended
from fencerow.store import store
from fencerow.store.finish import Requeued
from fencerow.store.workers import Holding
from fencerow.telemetry import Event, Telemetry
from fencerow.version import __version__
from fencerow.worker.acker import Acker
from fencerow.worker.attempt import Attempt, Interrupt
from fencerow.worker.batches import BatchExecutor
from fencerow.worker.claimer import Claimer
from fencerow.worker.executor import RunMiddleware
from fencerow.worker.handler import Handler
from fencerow.worker.keeper import Keeper
from fencerow.worker.lease import Lease
from fencerow.worker.loop import Loop
from fencerow.worker.pool import Pool
from fencerow.worker.reaper import Reaper

log = logging.getLogger("fencerow.worker")

FLUSH_S = 10.0
CLAIM_S = 5.0
TASKS_S = 2.0


class WorkerDied(RuntimeError):
    """A loop of the worker ended by an error; the cause is attached. Let the process end and be restarted."""


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
        self._strangers: dict[tuple[str, int], float] = {}  # jobs ours but unknown here, and since when
        self._tasks: list[asyncio.Task[None]] = []
        self._loops: list[Loop] = []
        self._slot_tasks: set[asyncio.Task[None]] = set()
        # Made here, so that a signal during the start is not lost.
        self._told, self._told_now = asyncio.Event(), asyncio.Event()
        self._started = False
        self._stopping = False
        self._over = False
        self._told, self._told_now = asyncio.Event(), asyncio.Event()
        self._owner: asyncio.Task[Any] | None = None
        self._owner_told = False

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
        self._raise_reason()

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
        self._unlisten = self._engine.listen(self._hear)
        for each in self._loops:
            self._tasks.append(asyncio.create_task(self._guarded(each), name=f"fencerow-{each.name}"))
        for pool in self._pools:
            for _ in range(pool.slots):
                self._open_slot(pool)
        self._started = True
        self.telemetry.emit(Event.WORKER_STARTED, worker=self.name)
        log.info("worker %s serves %s with %d jobs known", self.name, self._described(), len(self._handlers))

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
        for claimer in self._claimers:
            claimer.paused = True
        self._hand_back_waiting()
        if not self._told_now.is_set():
            await self._drained(self._drain_s())
        await self._claims_answered()
        await self._end_running()
        await self._wind_up()

    def request_stop(self, *, now: bool = False) -> None:
        """Ask `run` to stop; safe in a signal handler of the event loop. A second time, or `now`: at once."""
        if now or self._told.is_set():
            self._told_now.set()
        self._told.set()

    async def __aenter__(self) -> Self:
        await self.start()
        self._owner = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner, self._owner = self._owner, None
        if self._owner_told and owner is not None and owner.uncancel() == 0 and _is_cancel(error):
            error = None  # the cancel was ours, to say that the worker died
        await self.stop(now=error is not None)
        if error is None:
            self._raise_reason()

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
        self._dead: asyncio.Future[BaseException] = loop.create_future()
        self._lease = Lease(config.lease_s, config.renew_s)
        self._acker = Acker(
            self._engine,
            self.telemetry,
            on_done=self._forget,
            on_ended=self._announce_ended,
            on_queued=self._announce_queued,
        )
        self._executor = BatchExecutor(
            self._engine,
            self._lease,
            self._acker,
            self.telemetry,
            self._middleware,
            kill_s=config.cancel_kill_s,
            # SQLite has one writer: who holds it for long makes everybody's claims and outcomes wait.
            held_max_s=config.lease_s / 3 if self._engine.dialect == "sqlite" else None,
        )
        self._pools = self._make_pools()
        self._claimers = [self._make_claimer(pool) for pool in self._pools]
        self._claim_loops = {
            queue: Loop(f"claimer {' '.join(claimer.pool.queues)}", claimer.tick, self.telemetry)
            for claimer in self._claimers
            for queue in claimer.pool.queues[:1]
        }
        reaper = Reaper(
            self._engine,
            self._lease,
            config,
            self.telemetry,
            actor=f"worker {self.name}",
            on_queued=self._announce_queued,
            on_ended=self._announce_ended,
        )
        self._ack_loop = Loop("acker", self._acker.tick, self.telemetry)
        self._loops = [
            *self._claim_loops.values(),
            self._ack_loop,
            Loop("reaper", reaper.tick, self.telemetry, jitter=0.2),
        ]
        self._keeper = Keeper(
            self._engine,
            self._lease,
            self,
            name=self.name,
            info=self._info(),
            renew_s=config.renew_s,
            telemetry=self.telemetry,
            ping=self._soon,
        )

    def _make_pools(self) -> list[Pool]:
        groups: list[tuple[tuple[str, ...], int]]
        if isinstance(self._queues, Mapping):
            groups = [((queue,), slots) for queue, slots in self._queues.items()]
        else:
            groups = [(tuple(self._queues), self._slots)]
        for queue_names, slots in groups:
            if slots < 1:
                raise ConfigError(
                    f"queue {queue_names[0]!r} was given {slots} slots",
                    "a queue without a slot would never run anything",
                    "give it at least one, or leave it out",
                )
        return [
            Pool(queues, slots, self.config.prefetch_s, partial(self._wake_claimer, queues[0]))
            for queues, slots in groups
        ]

    def _wake_claimer(self, queue: str) -> None:
        for claimer in self._claimers:
            if queue in claimer.views:
                self._claim_loops[claimer.pool.queues[0]].wake()

    def _make_claimer(self, pool: Pool) -> Claimer:
        return Claimer(
            self._engine,
            pool,
            self._lease,
            self._handlers,
            self.telemetry,
            poll_max_s=self.config.poll_max_s,
            margin_s=self._deadline_margin_s(),
            suspect_running=lambda: any(each.claimed.suspect for each in self._attempts.values()),
            take=lambda attempt: self._take(pool, attempt),
            give_back=lambda attempt: self._acker.put(attempt, Released("waited too long for a slot"), 0.0),
        )

    def _info(self) -> dict[str, object]:
        queues = {queue: pool.slots for pool in self._pools for queue in pool.queues}
        return {
            "queues": queues,
            "names": sorted(self._handlers),
            "slots": sum(pool.slots for pool in self._pools),
            "version": __version__,
        }

    def _deadline_margin_s(self) -> float:
        """What a job may wait here before it starts, and take to be given up, before others end the attempt."""
        config = self.config
        return config.lease_s + config.prefetch_s + config.cancel_raise_s + config.cancel_kill_s

    def _described(self) -> str:
        return ", ".join(f"{'+'.join(pool.queues)} ({pool.slots} slots)" for pool in self._pools)

    # --- jobs ------------------------------------------------------------------------------------------

    def _take(self, pool: Pool, attempt: Attempt) -> None:
        self._attempts[attempt.claimed.id, attempt.claimed.attempt] = attempt
        if self._stopping:  # the answer to a claim that was on its way
            self._acker.put(attempt, Released("the worker shut down before it started"), 0.0)
        else:
            pool.put(attempt)

    def _forget(self, attempt: Attempt, _duration_s: float) -> None:
        self._attempts.pop((attempt.claimed.id, attempt.claimed.attempt), None)
        if attempt.claimed.suspect:
            self._wake_claimer(attempt.claimed.queue)

    def _open_slot(self, pool: Pool) -> None:
        task = asyncio.create_task(self._slot(pool), name="fencerow-slot")
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
            self._die(RuntimeError("a slot was cancelled from outside"))
        elif task.exception() is not None:
            self._die(task.exception())

    # --- hints -----------------------------------------------------------------------------------------

    def _hear(self, message: str | None) -> None:
        """A wake-up, in some other thread."""
        self._soon(lambda: self._heard(message))

    def _heard(self, message: str | None) -> None:
        if message is None:
            for claimer in self._claimers:
                for view in claimer.views.values():
                    view.look_again()
            for loop in self._claim_loops.values():
                loop.wake()
            return
        match decode(message):
            case Queued(queue, priority, run_at_us):
                self._hint(queue, priority, run_at_us)
            case CancelAsked(holder, _) if holder == self._lease.holder:
                self._keeper.look_now()
            case _:
                pass

    def _hint(self, queue: str, priority: int, run_at_us: int) -> None:
        for claimer in self._claimers:
            if queue in claimer.views:
                claimer.views[queue].hint(priority, run_at_us)
                self._claim_loops[claimer.pool.queues[0]].wake()

    def _announce_queued(self, jobs: list[Requeued]) -> None:
        """What we put behind our own marks lowers them at once, here and elsewhere."""
        lanes: dict[tuple[str, int], int] = {}
        for job in jobs:
            lane = (job.queue, job.priority)
            lanes[lane] = min(job.run_at_us, lanes.get(lane, job.run_at_us))
        messages = [
            encode(Queued(queue, priority, run_at_us)) for (queue, priority), run_at_us in lanes.items()
        ]
        if messages:
            self._engine.wake(messages)
        for (queue, priority), run_at_us in lanes.items():
            self._hint(queue, priority, run_at_us)

    def _announce_ended(self, ids: list[str]) -> None:
        if ids:
            self._engine.wake(encode_ended(ids))

    # --- what the keeper tells, in its own thread --------------------------------------------------------

    def on_holdings(self, holder: str, holdings: list[Holding]) -> None:
        self._soon(lambda: self._compare(holder, holdings))

    def on_death(self, holder: str) -> None:
        self._soon(lambda: self._lose(holder))

    def on_keeper_failed(self, error: BaseException) -> None:
        self._soon(lambda: self._die(error))

    def _compare(self, holder: str, holdings: list[Holding]) -> None:
        """Pass cancels on, and let go of jobs that a lost reply left to us without our knowing."""
        now = time.monotonic()
        unknown: dict[tuple[str, int], float] = {}
        for held in holdings:
            attempt = self._attempts.get((held.id, held.attempt))
            if attempt is None:
                unknown[held.id, held.attempt] = self._strangers.get((held.id, held.attempt), now)
            elif held.cancel_requested:
                attempt.end(Interrupt.CANCEL, self.config.cancel_raise_s)
        self._strangers = unknown
        for (job_id, number), since in tuple(unknown.items()):
            if now - since < self.config.renew_s or self._may_still_come(since):
                continue
            del self._strangers[job_id, number]
            log.warning(
                "job %s attempt %d is ours but unknown here (a lost reply); letting it go", job_id, number
            )
            self.telemetry.counters.add("strangers_released")
            self._release_stranger(holder, job_id, number)

    def _may_still_come(self, since: float) -> bool:
        """Whether a claim sent before then still waits for its answer: the job may be in it."""
        sent = [claimer.claiming_since for claimer in self._claimers]
        return any(each is not None and each <= since for each in sent)

    def _release_stranger(self, holder: str, job_id: str, number: int) -> None:
        released = store.Requeue(id=job_id, attempt=number, kind="released", detail='{"reason":"lost reply"}')

        async def release() -> None:
            try:
                self._announce_queued(await self._engine.arun(store.requeue([released], holder=holder)))
            except Exception as error:
                if not is_trouble(error):
                    raise
                log.warning("could not let go of job %s: %s; the next renewal tries again", job_id, error)

        task = asyncio.create_task(release())
        self._slot_tasks.add(task)
        task.add_done_callback(self._slot_closed)

    def _lose(self, holder: str) -> None:
        """Declared dead: everything held under that registration belongs to others now."""
        for attempt in list(self._attempts.values()):
            if attempt.holder == holder:
                attempt.end(Interrupt.LOST)

    # --- ending ----------------------------------------------------------------------------------------

    async def _guarded(self, loop: Loop) -> None:
        try:
            await loop.run()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._die(error, loop.name)

    def _die(self, error: BaseException | None, where: str = "a slot") -> None:
        if error is not None and not self._dead.done():
            log.critical("%s of worker %s ended by an error", where, self.name, exc_info=error)
            self._dead.set_result(error)
            if self._owner is not None and not self._stopping:
                # Nobody waits for `_dead` in a `with` block: half a worker must not look alive.
                self._owner_told = self._owner.cancel(f"worker {self.name} died")

    def _raise_reason(self) -> None:
        if self._dead.done() and not self._dead.cancelled():
            error = self._dead.result()
            raise WorkerDied(f"worker {self.name} died: {type(error).__name__}: {error}") from error

    async def _until_told(self, until_idle: bool) -> None:
        told = asyncio.create_task(self._told.wait())
        waits: set[asyncio.Future[Any]] = {told, self._dead}
        if until_idle:
            waits.add(asyncio.create_task(self._until_idle()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits - {self._dead}:
                each.cancel()

    async def _until_idle(self) -> None:
        """Until a look from the beginning found nothing due and nothing is held here."""
        while True:
            await asyncio.sleep(self.config.poll_min_s)
            if self._attempts or self._acker.backlog:
                continue
            if all(view.is_idle() for claimer in self._claimers for view in claimer.views.values()):
                return

    def _drain_s(self) -> float:
        longest = max((handler.timeout_s or 0.0 for handler in self._handlers.values()), default=0.0)
        return self.config.drain_s(longest)

    def _hand_back_waiting(self) -> None:
        for pool in self._pools:
            for attempt in pool.take_all():
                self._acker.put(attempt, Released("the worker shut down before it started"), 0.0)

    async def _drained(self, limit_s: float) -> None:
        """Wait for running handlers, at most this long, or until somebody is in a hurry."""
        deadline = time.monotonic() + limit_s
        while any(pool.running for pool in self._pools) and time.monotonic() < deadline:
            if self._told_now.is_set() or self._dead.done():
                return
            self._hand_back_waiting()
            await asyncio.sleep(0.02)

    async def _end_running(self) -> None:
        """Interrupt what still runs, and hand back what does not listen."""
        for attempt in list(self._attempts.values()):
            attempt.end(Interrupt.SHUTDOWN)
        deadline = time.monotonic() + min(1.0, self.config.cancel_kill_s)
        while any(pool.running for pool in self._pools) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        for attempt in list(self._attempts.values()):
            attempt.give_up_now()
        self._hand_back_waiting()

    async def _claims_answered(self) -> None:
        """End the claim loops, after the answers that are under way: what they bring is handed back."""
        for loop in self._claim_loops.values():
            loop.stop()
        claims = [task for task in self._tasks if task.get_name().startswith("fencerow-claimer")]
        if claims:
            await asyncio.wait(claims, timeout=CLAIM_S)

    async def _wind_up(self) -> None:
        if not await self._acker.flushed(FLUSH_S):
            log.error(
                "%d outcomes could not be written; leases and the reaper will settle them",
                self._acker.backlog,
            )
        for loop in self._loops:
            loop.stop()
        self._over = True
        await self._tasks_ended()
        await asyncio.to_thread(self._unlisten)
        await asyncio.to_thread(self._keeper.stop)
        await asyncio.to_thread(self._engine.flush, 1.0)
        self._executor.close()
        reason = "died" if self._dead.done() else "asked to stop"
        if not self._dead.done():
            self._dead.cancel()
        self.telemetry.emit(Event.WORKER_STOPPED, worker=self.name, reason=reason)
        log.info("worker %s has stopped", self.name)

    async def _tasks_ended(self) -> None:
        """A handler that swallows every cancel keeps its task; the worker does not wait for it for ever."""
        tasks = {*self._tasks, *self._slot_tasks}
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=TASKS_S)
        if left:
            log.error("%d handlers swallow every cancel and still run in worker %s", len(left), self.name)

    def _soon(self, call: Callable[[], None]) -> None:
        """Run something on the event loop, from any thread; nothing when the loop has gone."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # closed: the worker is over


def _is_cancel(error: BaseException | None) -> bool:
    return isinstance(error, asyncio.CancelledError)
