"""What a worker is made of. Each part is made of those above it, and none calls one that is made later.

keeper (thread) ── lease ──┐
claims ─→ pools ─→ life ─→ acker          what all of them believe of the attempts: the roster
reaper, chores             │
listener ─ wake-ups
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from fencerow.core.background.chores import Chores
from fencerow.core.background.loop import Endurance, Fatal, Loop, Loops
from fencerow.core.background.reaper import JobReaper
from fencerow.core.chore import Chore, Site, Ticking
from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError
from fencerow.core.model import rules
from fencerow.core.model.handler import Handler
from fencerow.core.model.outcome import Released
from fencerow.core.model.wanted import Blocked, Leave
from fencerow.core.model.worker_labels import parsed_labels
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.blocked import LoopWatch, ProcessEnd
from fencerow.core.worker.brought import Apart, brought
from fencerow.core.worker.calling import Calls
from fencerow.core.worker.claimer import Claimer
from fencerow.core.worker.claims import Claims
from fencerow.core.worker.control import Control
from fencerow.core.worker.deciding import Decider
from fencerow.core.worker.dispatch import Dispatch
from fencerow.core.worker.executor import Executor, Reports
from fencerow.core.worker.keeper import Keeper, keeper_engine
from fencerow.core.worker.lease import Failover, WorkerLease
from fencerow.core.worker.life import Life
from fencerow.core.worker.lines import JobLines
from fencerow.core.worker.middleware import Middleware
from fencerow.core.worker.on_loop import OnLoop
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.roster import AHEAD, Roster
from fencerow.core.worker.shutdown import Shutdown
from fencerow.core.worker.wakeups import WakeUps
from fencerow.db.clock import CarriedClock
from fencerow.db.connections import of_worker
from fencerow.db.engine import Engine
from fencerow.db.recent import Recent
from fencerow.db.text import amount
from fencerow.version import __version__


class Assembly:
    """Made on the event loop on which the worker then runs; nothing is started yet.

    `leave` is called with an operator's order to end.
    """

    def __init__(
        self,
        engine: Engine,
        handlers: Mapping[str, Handler],
        queues: Mapping[str, int] | Sequence[str],
        config: CoreConfig,
        telemetry: Telemetry,
        middleware: Middleware,
        *,
        name: str,
        slots: int,
        chores: Sequence[Chore | Ticking],
        ends_process: bool,
        leave: Callable[[Leave], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        groups = shared(queues, slots)
        # What is believed, and what is beside the jobs.
        self.fatal = Fatal(name, loop)
        self.loops = Loops(self.fatal)
        self.chores = Chores(chores, telemetry, self.loops.add)
        self.lease = WorkerLease(config.lease_s, config.renew_s)
        self.clock = CarriedClock()
        self.block = Recent[Blocked]()
        self.roster = Roster(
            self.lease,
            self.clock,
            started_least=started_least(groups, handlers.values()),
            suspects_max=config.suspects_max,
            margin_s=ending_margin_s(config),
        )
        kept = keeper_engine(engine, config.lease_s)
        failover = Failover(kept)
        labels = parsed_labels(config.labels)
        self.wakeups = WakeUps(engine, self.lease, self.roster.pools, self.chores, labels)
        site = Site(
            engine,
            config,
            telemetry,
            name,
            self.roster.queues,
            self.clock.due,
            self.wakeups.announce,
            self.clock.now_us,
            lambda: self.claims.taking(),  # made later
        )
        # The life of an attempt, from its end to its claim.
        lines = JobLines.of(config)
        self.acker = Acker(engine, telemetry, self.roster, self.wakeups, failover, lines)
        # SQLite has one writer: who holds it for long makes everybody's claims and outcomes wait.
        held_max_s = config.lease_s / 3 if engine.traits.one_writer else None
        decider = Decider(engine, telemetry, unknown_max_s=config.unknown_max_s, held_max_s=held_max_s)
        on_loop = OnLoop()
        kill_s = config.cancel_kill_s
        calls = Calls(engine, decider, telemetry, middleware, kill_s=kill_s, on_loop=on_loop, config=config)
        report = Reports(self.acker, telemetry, lines).report
        together = brought().together
        held = _held(self.clock)
        executor = Executor(engine, self.lease, report, telemetry, calls, decider, together, lines, held)
        apart = _apart(executor, calls, decider, config)
        self.dispatch = Dispatch(engine, executor, calls, decider, apart, self.wakeups.wake_claimers)
        self.life = Life(
            self.roster,
            self.dispatch,
            self.acker,
            self.lease,
            failover,
            self.fatal,
            hung_max=config.hung_max,
        )
        self.claims = Claims(
            site,
            self.lease,
            self.roster,
            self.loops,
            partial(
                Claimer,
                site=site,
                lease=self.lease,
                clock=self.clock,
                handlers=handlers,
                roster=self.roster,
                dispatch=self.dispatch,
                life=self.life,
                margin_s=config.lease_s + ending_margin_s(config) + longest_wait_s(handlers.values()),
            ),
        )
        for group, count in groups:
            self.claims.open(group, count)
        self._add_loops(site)
        # What comes from outside, and how the worker ends.
        self.control = Control(
            site,
            self.lease,
            self.clock,
            self.roster,
            self.life,
            self.claims,
            self.wakeups,
            self.loops,
            self.block,
            self.fatal,
            leave,
        )
        endurance = Endurance("keeper", config.lease_s)
        self.loops.watch(endurance)
        self.keeper = Keeper(
            kept,
            self.lease,
            failover,
            endurance,
            self.control,
            self.clock,
            name=name,
            info=registration(engine, self.roster.pools, handlers, labels),
            renew_s=config.renew_s,
            telemetry=telemetry,
        )
        self.shutdown = Shutdown(self.roster, self.life, self.acker, kill_s=config.cancel_kill_s)
        ending = ProcessEnd(engine, self.lease, self.roster, self.acker, decider, self.keeper)
        self.watch = LoopWatch(
            loop,
            on_loop,
            self.roster.held,
            telemetry,
            self.block,
            ending if ends_process else None,
            kill_s=config.cancel_kill_s,
        )

    def start(self) -> None:
        """Run the loops and open the slots."""
        self.watch.start()
        self.loops.start()
        for pool in self.roster.pools:
            self.life.fill(pool)

    def _add_loops(self, site: Site) -> None:
        """What writes outcomes, what looks after the tables in every worker with no leader, and the user's chores.

        What looks after the tables is work in the background. What fails there fails in every worker, so that a worker
        which ended by it would take the next one with it; it is stated on the row of each instead, and jobs go on.
        """
        telemetry = site.telemetry
        lease_s = site.config.lease_s
        acker = Loop("acker", self.acker.tick, telemetry, endures_s=lease_s, portion=self.acker.portion)
        actor = f"worker {site.worker}"
        reaper = JobReaper(site.engine, self.lease, site.config, telemetry, self.wakeups, actor=actor)
        reaping = Loop("reaper", reaper.tick, telemetry, jitter=0.2, background=True, portion=reaper.portion)
        self.chores.add([chore for make in brought().chores for chore in make(site)])
        self.loops.add(acker, reaping, *self.chores.loops)


def shared(queues: Mapping[str, int] | Sequence[str], slots: int) -> list[tuple[tuple[str, ...], int]]:
    """Each queue with slots of its own, or all queues that use `slots` together.

    Raises:
        ConfigError: a queue would have no slot.
    """
    if not isinstance(queues, Mapping):
        groups = [(tuple(queues), slots)]
    else:
        groups = [((queue,), count) for queue, count in queues.items()]
    for names, count in groups:
        if count < 1:
            raise ConfigError(
                f"queue {names[0]!r} was given {amount(count, 'slot')}",
                "a queue without a slot never runs a job",
                "give it at least one, or leave it out",
            )
    return groups


def started_least(groups: Iterable[tuple[Sequence[str], int]], handlers: Iterable[Handler]) -> int:
    """How many jobs may always have started: what the slots run, and what ends while outcomes are being written."""
    each = max((handler.batch_max or 1 for handler in handlers), default=1)
    return sum(slots for _, slots in groups) * each + AHEAD


def ending_margin_s(config: CoreConfig) -> float:
    """What a job may wait here before it starts, and take to be given up."""
    return config.prefetch_s + config.child_start_s + config.cancel_raise_s + config.cancel_kill_s


def longest_wait_s(handlers: Iterable[Handler]) -> float:
    """How long a job may wait here for others to come into its call."""
    return max((handler.batch_wait_s for handler in handlers), default=0.0)


def registration(
    engine: Engine, pools: Sequence[Pool], handlers: Mapping[str, Handler], labels: Sequence[str] = ()
) -> dict[str, object]:
    """What the worker's row tells operators."""
    return {
        "queues": {queue: pool.slots for pool in pools for queue in pool.queues},
        "names": sorted(handlers),
        "labels": list(labels),
        "slots": sum(pool.slots for pool in pools),
        "version": __version__,
        "rules": rules.KNOWN,
        "connections": sum(connections(engine, handlers.values()).values()),
    }


def connections(engine: Engine, handlers: Iterable[Handler]) -> Mapping[str, int]:
    """How many connections the worker's process opens at most, by what they are for; none on SQLite."""
    if not engine.traits.has_server:
        return {}
    from fencerow.db.postgres import PostgresEngine  # with its driver: only where there is a server

    if not isinstance(engine, PostgresEngine):
        return {}  # one that stands before it, to record or to slow it down, opens none itself
    return of_worker(engine.pool_max, plain=any(not handler.is_async for handler in handlers))


def described(pools: Iterable[Pool]) -> str:
    """The queues and their slots, for the log."""
    return ", ".join(f"{'+'.join(pool.queues)} ({amount(pool.slots, 'slot')})" for pool in pools)


def _held(clock: CarriedClock) -> Callable[[Mapping[str, str]], Released | None] | None:
    """What may keep a claimed job from starting now, by the time of the database; None where no wing brings it.

    The database's time is known: a claim follows a look at the lanes, which reads it.
    """
    hold = brought().hold
    if hold is None:
        return None

    def held(headers: Mapping[str, str]) -> Released | None:
        now_us = clock.now_us()
        return None if now_us is None else hold(headers, now_us)

    return held


def _apart(
    executor: Executor, calls: Calls, decider: Decider, config: CoreConfig
) -> Callable[[], Apart] | None:
    """Makes how attempts run in child processes; None where a child would not know where to write."""
    processes = brought().processes
    if processes is None or config.url is None:
        return None
    return partial(processes.make, executor, calls, decider, config)
