"""The worker: one process that claims and runs jobs, and the order in which its parts start and stop."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self, Unpack

from fencerow.core.answering import answer
from fencerow.core.chore import Chore, Ticking
from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError
from fencerow.core.locator import note_ready
from fencerow.core.model.handler import Handler
from fencerow.core.model.wanted import Leave
from fencerow.core.store import store
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.assembly import Assembly, connections, described, shared
from fencerow.core.worker.brought import check_apart
from fencerow.core.worker.idling import any_soon
from fencerow.core.worker.idling import until_idle as until_idle_now
from fencerow.core.worker.middleware import NO_MIDDLEWARE, Middleware
from fencerow.core.worker.ordered import ServedChange, not_registered, ordering_of
from fencerow.core.worker.shutdown import drain_s, tasks_ended
from fencerow.core.worker.vitals import Phase, Vitals, found_faults
from fencerow.db.connections import told
from fencerow.db.engine import Engine
from fencerow.db.memory import FROZEN_MEMORY
from fencerow.db.run import arun
from fencerow.db.service import is_in, soon
from fencerow.db.text import amount
from fencerow.db.trouble import is_shortage, out_of_resources

log = logging.getLogger("fencerow.worker")


@answer
class LoopWorker:
    """A worker in an event loop. `plain.py` has what plain code uses of it."""

    def __init__(
        self,
        engine: Engine,
        handlers: Mapping[str, Handler],
        queues: Mapping[str, int] | Sequence[str],
        config: CoreConfig,
        telemetry: Telemetry | None = None,
        middleware: Middleware = NO_MIDDLEWARE,
        *,
        slots: int | None = None,
        name: str | None = None,
        chores: Sequence[Chore | Ticking] = (),
        ends_process: bool = True,
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
        self._chores = tuple(chores)
        self._ends_process = ends_process
        for handler in self._handlers.values():
            if handler.process:
                check_apart(handler, config)
        self._parts: Assembly  # from the start on
        # Made here, so that a signal during the start is not lost.
        self._asked, self._asked_now = asyncio.Event(), asyncio.Event()
        self._stopped, self._ended = asyncio.Event(), threading.Event()
        self._in_run = self._signalled = False
        self._why = ""  # it stops
        self._leave_by: float | None = None  # monotonic seconds: an order's own limit
        self._left: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = False

    # --- life ----------------------------------------------------------------------------------------

    async def run(self, *, until_idle: bool = False) -> None:
        """Run until `request_stop`, or with `until_idle` until nothing is due; then shut down in order. What ends when
        nothing is due waits for no more jobs before it calls a batch handler.

        Raises:
            RuntimeError: one of the worker's loops ended with an error (`WorkerDied`). Let this error end the
                process.
            DatabaseError: the worker could not even register.
        """
        self._in_run = True
        if until_idle:
            self._handlers = {
                name: replace(handler, batch_wait_s=0.0) if handler.batch_wait_s else handler
                for name, handler in self._handlers.items()
            }
        await self.start()
        try:
            await self._until_asked(until_idle)
        finally:
            await self.stop()
        self._parts.fatal.raise_reason()

    async def start(self) -> None:
        """Check the schema, register, and start the loops.

        Raises:
            OutOfResources: the process has no descriptors, threads or memory left; nothing runs. DatabaseError: the
                worker could not register.
        """
        try:
            await self._start()
        except (OSError, MemoryError, RuntimeError) as error:
            if not is_shortage(error):
                raise
            raise out_of_resources("the worker could not start", error) from error

    async def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(store.check_schema, self._engine)
        note_ready(self._engine)
        parts = self._parts = self._made()
        try:
            await asyncio.to_thread(parts.keeper.start)
            self._unlisten = self._engine.listen(parts.wakeups.hear, loop=self._loop)
        except BaseException:
            parts.dispatch.abandon()
            await asyncio.to_thread(parts.keeper.stop)
            raise
        parts.start()
        self._started = True
        FROZEN_MEMORY.begin()
        self.telemetry.emit(Fact.WORKER_STARTED, worker=self.name)
        text = "worker %s serves %s with %s known, and waits for jobs"
        log.info(text, self.name, described(parts.roster.pools), amount(len(self._handlers), "job"))
        if opens := connections(self._engine, self._handlers.values()):
            log.info("worker %s opens at most %s", self.name, told(opens))

    async def stop(self, *, now: bool = False) -> None:
        """Stop claiming, let running jobs end, release those that do not end, write all outcomes, and retire.

        With `now`, running handlers are cancelled at once. A job whose handler cannot be stopped is released
        too, without a failure, so that nobody must wait for the lease to end. A second call makes the first
        one hurry.
        """
        if now:
            self._asked_now.set()
        if not self._started or self._parts.life.leaving:
            return
        parts = self._parts
        parts.life.leaving = True
        parts.acker.tally.leaves()
        parts.fatal.expect()
        parts.chores.end(0.0 if self._asked_now.is_set() else self.config.cancel_kill_s)
        parts.shutdown.release_waiting()
        limit_s = 0.0 if self._asked_now.is_set() else drain_s(self.config, self._handlers)
        parts.shutdown.tell(self.name, self._why, limit_s, by_signal=self._signalled)
        await parts.shutdown.drained(limit_s, self._hurried)
        parts.claims.stop()
        await parts.claims.answered()  # what they bring is released
        await parts.shutdown.end_running()
        await parts.shutdown.outcomes_written()
        await parts.chores.ended()
        await self._wind_up()

    def request_stop(self, *, now: bool = False) -> None:
        """Ask `run` to stop, from any thread or a signal handler of its event loop. A second call, or `now`, stops it
        at once."""
        if self._loop is not None and not is_in(self._loop):
            soon(self._loop, partial(self.request_stop, now=now))
            return
        if now or self._asked.is_set():
            self._asked_now.set()
        self._asked.set()

    def signalled(self, name: str = "a signal") -> None:
        """A signal asks `run` to stop, a second time at once. From any thread or signal handler, in a blocked loop too.

        A loop that does not answer then for `cancel_kill_s`, or a second after a second signal, ends the process.
        """
        hurry, self._signalled, self._why = self._signalled, True, name
        if self._started:
            self._parts.watch.leave_asked(hurry=hurry)
        if self._loop is None:
            self.request_stop()
        else:
            soon(self._loop, self.request_stop)

    async def change(self, **change: Unpack[ServedChange]) -> int:
        """Change what this worker serves while it runs; returns the order's version. The change is in force
        when this returns.

        `change`: `slots`, `queues`, `remove`, `paused`, `actor` and `reason`, as of `ServedChange`. This writes the
        same order, to the same row, as an operator does from elsewhere.

        Raises:
            OrderRefused: somebody else changed the worker first, it is leaving, or it has no registration
                now.
            InvalidInput: the change does not fit what the worker serves.
        """
        holder = self.holder
        if holder is None:
            raise not_registered(self.name)
        ordering = ordering_of(holder, change, self.config.actor or f"worker {self.name}")
        order = await arun(ordering, self._engine.arun)
        self._parts.control.carry_out(holder, order.version, order.wanted)
        return order.version

    async def wait_stopped(self) -> None:
        """Wait until the worker has ended; an operator may order this from elsewhere."""
        await self._stopped.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        self._parts.fatal.own(asyncio.current_task())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._parts.fatal.disown(error):
            error = None  # the cancel was ours, to say that the worker died
        await self.stop(now=error is not None)
        if self._left is not None:
            await self._left
        if error is None:
            self._parts.fatal.raise_reason()

    @property
    def slot_groups(self) -> Sequence[tuple[Sequence[str], int]]:
        """What it serves when it starts: queues that use the same slots, and how many slots."""
        return shared(self._queues, self._slots_shared)

    @property
    def running(self) -> int:
        """How many jobs this worker holds now: running, waiting for a slot, or ended and not yet confirmed."""
        return len(self._parts.roster.held) if self._started else 0

    async def queues_soon(self) -> bool:
        """Whether what it does beside its jobs will queue jobs at once, such as those that follow a flow; true before
        it has started. May raise what the database does."""
        return not self._started or await any_soon(self._engine, self._parts)

    @property
    def holder(self) -> str | None:
        """The id of the present registration; None while there is none."""
        return self._parts.lease.holder if self._started else None

    def vitals(self) -> Vitals:
        """How this worker is. From any thread; it needs neither the event loop nor the database."""
        if not self._started:
            return Vitals(Phase.STARTING)
        parts = self._parts
        if self._stopped.is_set():
            return Vitals(Phase.ENDED, is_done=not self._signalled)
        faults = found_faults(
            self.config,
            keeper_silent_s=parts.keeper.silent_s(),
            loop_silent_s=parts.watch.silent_s(),
            drain_s=drain_s(self.config, self._handlers),
        )
        return Vitals(
            Phase.LEAVING if parts.life.leaving else Phase.RUNNING,
            holds_lease=parts.lease.holds(),
            running=self.running,
            slots=sum(pool.slots for pool in tuple(parts.roster.pools)),
            connections=sum(connections(self._engine, self._handlers.values()).values()),
            faults=faults,
        )

    def _made(self) -> Assembly:
        return Assembly(
            self._engine,
            self._handlers,
            self._queues,
            self.config,
            self.telemetry,
            self._middleware,
            name=self.name,
            slots=self._slots_shared,
            chores=self._chores,
            ends_process=self._ends_process,
            leave=self._leave,
        )

    # --- ending ----------------------------------------------------------------------------------------

    async def _until_asked(self, until_idle: bool) -> None:
        asked = asyncio.create_task(self._asked.wait())
        waits: set[asyncio.Future[Any]] = {asked, self._parts.fatal.future}
        if until_idle:
            idle = until_idle_now(self._engine, self.config, list(self._handlers), self._parts)
            waits.add(asyncio.create_task(idle))
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits - {self._parts.fatal.future}:
                each.cancel()
        for each in done - {self._parts.fatal.future}:
            each.result()  # an error of the look for due jobs

    def _leave(self, leave: Leave) -> None:
        """An operator wants this worker to end. A later order can only make it sooner."""
        self._why = "an operator's order"
        if leave.within_s is not None:
            self._leave_by = time.monotonic() + leave.within_s
        if leave.within_s == 0:
            self._asked_now.set()
        self._asked.set()
        if not self._in_run and self._left is None:
            # In a `with` block nobody waits to be asked.
            self._left = asyncio.create_task(self.stop(), name="fencerow-leaving")

    def _hurried(self) -> bool:
        late = self._leave_by is not None and time.monotonic() >= self._leave_by
        return late or self._asked_now.is_set() or self._parts.fatal.is_sudden

    async def _wind_up(self) -> None:
        parts = self._parts
        parts.loops.stop()
        parts.life.end()
        await tasks_ended({*parts.loops.tasks.values(), *parts.life.tasks}, self.name)
        await asyncio.to_thread(self._unlisten)
        await asyncio.to_thread(parts.keeper.stop)
        await asyncio.to_thread(parts.watch.stop)
        await asyncio.to_thread(self._engine.flush, 1.0)
        await parts.dispatch.close()
        reason = "died" if parts.fatal.happened() else "asked to stop"
        parts.fatal.rule_out()
        self.telemetry.emit(Fact.WORKER_STOPPED, worker=self.name, reason=reason)
        FROZEN_MEMORY.end()
        self._stopped.set()
        self._ended.set()
        log.info("worker %s has stopped; ended: %s", self.name, parts.acker.tally.told())
