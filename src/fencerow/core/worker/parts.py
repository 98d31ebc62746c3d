"""What a worker is made of: every part made, and told whom it speaks to.

keeper (thread) ── lease ──┐
claimer ─→ pool ─→ slots ─→ acker          each loop: one noun, one file
reaper                     │
notifier (thread) ── hints ┘
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from fencerow.core.chore import Chore, Site, Ticking
from fencerow.core.config import Config
from fencerow.core.db.engine import Engine
from fencerow.core.model.outcome import Released
from fencerow.core.model.wanted import Failing, Leave, Share
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.begun import Begun
from fencerow.core.worker.blocked import LoopWatch
from fencerow.core.worker.building import (
    begun_least,
    deadline_margin_s,
    ending_margin_s,
    make_pools,
    registration,
)
from fencerow.core.worker.carried import Carried
from fencerow.core.worker.chores import Chores
from fencerow.core.worker.claimer import Claimer
from fencerow.core.worker.claims import Claims
from fencerow.core.worker.control import Control
from fencerow.core.worker.death import Death
from fencerow.core.worker.ending import Ending
from fencerow.core.worker.handler import Handler
from fencerow.core.worker.hearing import Hearing
from fencerow.core.worker.holdings import Holdings
from fencerow.core.worker.keeper import Keeper
from fencerow.core.worker.lease import Lease
from fencerow.core.worker.leaving import Leaving
from fencerow.core.worker.loop import Loop
from fencerow.core.worker.middleware import Middleware
from fencerow.core.worker.overdue import OverdueWatch
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.slots import Slots
from fencerow.core.worker.upkeep import upkeep_loops
from fencerow.core.worker.workplace import Workplace


class Parts:
    """Made on the event loop on which the worker then runs; nothing is started yet.

    `leave` is called with an operator's order to end.
    """

    def __init__(
        self,
        engine: Engine,
        handlers: Mapping[str, Handler],
        queues: Mapping[str, int] | Sequence[str],
        config: Config,
        telemetry: Telemetry,
        middleware: Middleware,
        *,
        name: str,
        slots: int,
        chores: Sequence[Chore | Ticking],
        ends_process: bool,
        leave: Callable[[Leave], None],
    ) -> None:
        self._engine = engine
        self._config = config
        self._telemetry = telemetry
        self._loop = asyncio.get_running_loop()
        self.handlers = handlers
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self.death = Death(name, self._loop)
        self.lease = Lease(config.lease_s, config.renew_s)
        self.carried = Carried(went_back=lambda: self.soon(self.begun.clock_went_back))
        self.pools = make_pools(queues, slots, self._make_pool)
        least = begun_least(self.pools, handlers.values())
        self.begun = Begun(least, self.attempts, self.pools, lambda: self.keeper.look_now())
        self.claims = Claims(telemetry, endures_s=config.lease_s)
        self.chores = Chores(chores, telemetry)
        self.hearing = Hearing(
            engine,
            self.lease,
            self.claims,
            look_now=lambda: self.keeper.look_now(),
            soon=self.soon,
            tell=self.chores.tell,
        )
        self.acker = Acker(
            engine,
            telemetry,
            on_done=self._forget,
            on_confirmed=lambda attempt: self.keeper.confirmed(*attempt.key),
            on_ended=self.hearing.announce_ended,
            on_queued=self.hearing.announce_queued,
        )
        self.workplace = Workplace(engine, self.lease, self.acker, telemetry, middleware, config)
        self.slots = Slots(self.workplace, self.death, hung_max=config.hung_max)
        self.leaving = Leaving(self.pools, self.attempts, self.acker, kill_s=config.cancel_kill_s)
        overdue = OverdueWatch(self.attempts, margin_s=ending_margin_s(config), lease_s=config.lease_s)
        self.control = Control(
            name,
            self.pools,
            self.attempts,
            self.claims,
            self.begun,
            telemetry,
            failing=self._failing,
            blocked=lambda: self.watch.stated(),
            shortage=self._shortage,
            overdue=overdue.look,
            behind_s=self.carried.behind_s,
            serve=self._serve,
            resized=self.slots.fill,
            hand_back=self.leaving.hand_back,
            leave=leave,
            look_now=lambda: self.keeper.look_now(),
            soon=self.soon,
        )
        self.keeper = self._make_keeper(name)
        self.watch = self._make_watch(ends_process)
        for pool in self.pools:
            self.claims.add(self._make_claimer(pool))
        self.loops = self._all_loops(name)

    def start(self) -> None:
        """Run the loops and open the slots."""
        self.watch.start()
        for loop in self.loops:
            self._run(loop)
        for pool in self.pools:
            self.slots.fill(pool)

    def take(self, pool: Pool, attempt: Attempt) -> None:
        """A claim brought this attempt: it waits for a slot of the pool, or goes back."""
        key = attempt.key
        if twice := key in self.attempts or self.slots.works_on(key):
            # The database went back behind our first claim. Two runs must not share one fence.
            self.keeper.claimed_twice(*key)
        if key in self.attempts:
            return  # what runs goes on: it is the holder again
        self.attempts[key] = attempt
        self.workplace.suspects.take(attempt)
        unwanted = self.control.refuses(attempt, pool)
        # The answer to a claim that was on its way, or a run that was given up and still writes.
        if self.control.leaving or twice:
            self.leaving.hand_back(attempt)
        elif unwanted is not None:
            self.leaving.hand_back(attempt, unwanted)
        else:
            pool.put(attempt)

    def soon(self, call: Callable[[], None]) -> None:
        """Run something on the event loop, from any thread; nothing when the loop has gone."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # closed: the worker is over

    # --- what they tell each other -----------------------------------------------------------------------

    def _forget(self, attempt: Attempt) -> None:
        self.attempts.pop(attempt.key, None)
        if self.begun.met:
            self.begun.go_on()
        if self.workplace.suspects.over(attempt):
            self.claims.wake(attempt.claimed.queue)

    def _wake_claimers(self, queue: str) -> None:
        self.claims.wake(queue)

    def _failing(self) -> tuple[Failing, ...]:
        """Work in the background that fails just now. Called in the keeper's thread too."""
        return tuple(loop.failing for loop in tuple(self.loops) if loop.failing is not None)

    def _shortage(self) -> str | None:
        """What a loop or the keeper was short of within the last minutes. Called in the keeper's thread."""
        told = (self.keeper.shortage(), *(loop.shortage() for loop in tuple(self.loops)))
        return next((each for each in told if each is not None), None)

    def _serve(self, share: Share) -> None:
        """Serve queues that nobody served here before."""
        pool = self._make_pool(share.queues, share.slots)
        self.pools.append(pool)
        loop = self.claims.add(self._make_claimer(pool), paused=self.control.paused)
        self.loops.append(loop)
        self._run(loop)
        self.slots.fill(pool)

    # --- building ----------------------------------------------------------------------------------------

    def _run(self, loop: Loop) -> None:
        self.tasks.append(asyncio.create_task(self.death.guard(loop), name=f"fencerow-{loop.name}"))

    def _all_loops(self, name: str) -> list[Loop]:
        site = Site(
            self._engine,
            self._config,
            self._telemetry,
            name,
            lambda: [queue for pool in self.pools for queue in pool.queues],
        )
        upkeep = upkeep_loops(site, self.lease, self.hearing)
        acker = Loop("acker", self.acker.tick, self._telemetry, endures_s=self._config.lease_s)
        return [*self.claims.loops, acker, *upkeep, *self.chores.loops]

    def _make_pool(self, queues: Sequence[str], slots: int) -> Pool:
        return Pool(
            queues, slots, self._config.prefetch_s, self._wake_claimers, room=lambda: self.begun.room()
        )

    def _make_claimer(self, pool: Pool) -> Claimer:
        return Claimer(
            self._engine,
            pool,
            self.lease,
            self.handlers,
            self._telemetry,
            self.carried,
            poll_max_s=self._config.poll_max_s,
            margin_s=deadline_margin_s(self._config),
            suspects=self.workplace.suspects,
            withheld=self.workplace.is_withheld,
            take=lambda attempt: self.take(pool, attempt),
            doubt=self.begun.doubt,
            give_back=lambda attempt: self.acker.put(attempt, Released("waited too long for a slot"), 0.0),
        )

    def _make_keeper(self, name: str) -> Keeper:
        config = self._config
        holdings = Holdings(
            self._engine,
            self.attempts,
            self.claims,
            self.begun,
            self._telemetry,
            renew_s=config.renew_s,
            cancel_raise_s=config.cancel_raise_s,
            soon=self.soon,
            spawn=self.slots.spawn,
            on_queued=self.hearing.announce_queued,
            on_ended=self.hearing.announce_ended,
            on_failed=self.death.tell,
        )
        return Keeper(
            self._engine,
            self.lease,
            holdings,
            self.control,
            self.carried,
            name=name,
            info=registration(self.pools, self.handlers),
            renew_s=config.renew_s,
            telemetry=self._telemetry,
        )

    def _make_watch(self, ends_process: bool) -> LoopWatch:
        ending = Ending(
            self._engine,
            self.lease,
            self.attempts,
            self.acker,
            self.workplace.judge,
            lambda: self.keeper,
        )
        return LoopWatch(
            self._loop,
            self.workplace.on_loop,
            self._telemetry,
            kill_s=self._config.cancel_kill_s,
            find=lambda job_id, attempt: self.attempts.get((job_id, attempt)),
            end=ending.end if ends_process else lambda _reason, _late: None,
        )
