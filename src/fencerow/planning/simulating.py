"""A plan played under virtual time, by our own rules: fires, misfires and overlaps, gates, limits, slots and retries.

simpy keeps the time and the order of events. What decides is the code that decides in production: `schedules.misfire`,
`turns.gates`, `limits.room`, `core.model.backoff`. So jobs wait for one another by chance here; closed formulas
take everything in the mean, and do not say how long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fencerow.core.errors import MissingExtra
from fencerow.planning.chances import Chances
from fencerow.planning.claiming import Slots
from fencerow.planning.errors import InvalidPlan
from fencerow.planning.gating import PlannedGates, SimulatedJob
from fencerow.planning.plan import JobPlan, Plan
from fencerow.planning.rates import FROM_US
from fencerow.schedules.definition import Overlap, seed_of
from fencerow.schedules.misfire import Catching, due
from fencerow.schedules.options import SchedulePlan

if TYPE_CHECKING:
    import simpy

JOBS_MAX = 200_000
LOOKS = 240  # at the backlog
Process = Generator["simpy.Event", Any, None]


@dataclass(slots=True)
class Simulation:
    """What came of it. `backlog`: jobs that were due and did not run, at evenly spaced instants `every_s`.

    `waits_s`: from when each job was due to its start, by kind. `busy_s`: slots in use, by pool; and of each key, by
    `key/entity`. `drained_s`: how long after the outage the last key had nothing to do; None: there was none, or it
    never came to that.
    """

    every_s: float
    backlog: list[int] = field(default_factory=list)
    waits_s: dict[str, list[float]] = field(default_factory=dict)
    busy_s: dict[str, float] = field(default_factory=dict)
    submitted: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    drained_s: float | None = None


def simulated(plan: Plan, seed: int = 0) -> Simulation:
    """Play the plan once. The same seed plays the same.

    Raises:
        MissingExtra: simpy is not installed. InvalidPlan: it would be too many jobs.
    """
    hours = float(plan.horizon_s) / 3600
    jobs = sum(float(each.rate_per_hour) * plan.entities_of(each) * hours for each in plan.jobs)
    if jobs > JOBS_MAX:
        raise InvalidPlan(
            f"a simulation of {float(plan.horizon_s):g} s would play {jobs:,.0f} jobs",
            f"at most {JOBS_MAX:,} are played",
            "lower horizon_s, or the number of entities",
        )
    try:
        import simpy
    except ModuleNotFoundError:
        raise MissingExtra(
            "`fencerow plan --simulate` needs simpy, which is not installed",
            "only simulations need it; all else of a plan is calculated without",
            'python -m pip install "fencerow[plan]"',
        ) from None
    return _Play(plan, Chances(seed), simpy.Environment(initial_time=FROM_US)).run()


class _Play:
    """One run. The environment's time is microseconds since 1970."""

    def __init__(self, plan: Plan, chances: Chances, env: simpy.Environment) -> None:
        self._plan, self._chances, self._env = plan, chances, env
        self._gates, self._slots = PlannedGates(plan), Slots(plan)
        self._live: Counter[str] = Counter()  # by row of a schedule
        self._undone: Counter[str] = Counter()  # by key, or kind without one
        self._backlog = 0
        self._numbers = 0
        self._is_up = True
        self._up = env.event()
        self._ended_us: int | None = None  # the outage
        self._looks: dict[str, int] = {}  # at gates, and at queues: ""
        self._drains: set[str] = set()  # who had something to do at its end, and has still
        self._until_us = FROM_US + round(plan.horizon_s * 1_000_000)
        self._found = Simulation(float(plan.horizon_s) / LOOKS)

    def run(self) -> Simulation:
        for kind in self._plan.jobs:
            if kind.schedule is None:
                self._env.process(self._arrivals(kind))
                continue
            for entity in range(self._plan.entities_of(kind)):
                self._env.process(self._fires(kind, kind.schedule, entity))
        self._env.process(self._watched())
        if self._plan.outage is not None:
            self._env.process(self._outage())
        self._env.run(until=self._until_us)
        return self._found

    # --- what comes ------------------------------------------------------------------------------------

    def _arrivals(self, kind: JobPlan) -> Process:
        entities = self._plan.entities_of(kind)
        while True:
            yield self._env.timeout(self._chances.next_arrival_us(float(kind.rate_per_hour) * entities))
            self._submit(kind, self._chances.one_of(entities))

    def _fires(self, kind: JobPlan, schedule: SchedulePlan, entity: int) -> Process:
        """One row of a schedule. Who ticks is a worker: while none runs, nothing fires."""
        seed = seed_of(kind.name, str(entity) if kind.key is not None else "")
        catching = Catching(schedule.misfire, schedule.catchup_max, round(schedule.late_s * 1e6))
        next_us = schedule.spec.next_after(FROM_US, seed)
        while True:
            yield self._env.timeout(max(0, next_us - self._now_us))
            if not self._is_up:
                yield self._up
            found = due(schedule.spec, seed, next_us, self._now_us, catching)
            next_us = found.next_us
            self._found.left_out[kind.name] += found.left_out
            for _ in found.fires:
                if schedule.overlap is Overlap.SKIP and self._live[seed]:
                    self._found.left_out[kind.name] += 1
                else:
                    self._submit(kind, entity, seed, queues=schedule.overlap is Overlap.QUEUE)

    def _submit(self, kind: JobPlan, entity: int, row: str = "", *, queues: bool = False) -> None:
        self._numbers += 1
        gates = self._gates.gates_of(kind, entity, row if queues else "", self._numbers)
        job = SimulatedJob(self._numbers, kind, entity, self._now_us, gates, row=row)
        self._found.submitted[kind.name] += 1
        self._live[row] += 1
        self._undone[_whose(job)] += 1
        self._make_due(job)

    def _make_due(self, job: SimulatedJob) -> None:
        self._backlog += 1
        if job.gates:
            self._gates.arrive(job)
            self._hand_over((job.gates[0],))
        else:
            self._slots.queue(job)
        self._claim()

    # --- what is done with it --------------------------------------------------------------------------

    def _hand_over(self, names: tuple[str, ...] | list[str]) -> None:
        if not self._is_up:
            return
        given, again_us = self._gates.hand_over(names, self._now_us)
        for job in given:
            self._slots.queue(job)
        for gate, at_us in again_us.items():
            self._look(gate, at_us)

    def _claim(self) -> None:
        if not self._is_up:
            return
        started, again_us = self._slots.claim(self._now_us)
        for job in started:
            self._env.process(self._run(job))
        if again_us is not None:
            self._look("", again_us)

    def _look(self, gate: str, at_us: int) -> None:
        """Look at a gate when time makes room there, or at all queues; one look is enough."""
        planned_us = self._looks.get(gate)
        if planned_us is None or at_us < planned_us:
            self._looks[gate] = at_us
            self._env.process(self._later(gate, at_us))

    def _later(self, gate: str, at_us: int) -> Process:
        yield self._env.timeout(max(1, at_us - self._now_us))
        if self._looks.get(gate) == at_us:
            del self._looks[gate]
            self._hand_over([gate] if gate else [])
            self._claim()

    def _run(self, job: SimulatedJob) -> Process:
        """One attempt, from its start to its end."""
        self._backlog -= 1
        if not job.failures:
            waited_s = (self._now_us - job.due_us) / 1e6
            self._found.waits_s.setdefault(job.kind.name, []).append(waited_s)
        took_us = self._chances.duration_us(job.kind)
        yield self._env.timeout(took_us)
        for whose in (f"slots {self._plan.workers.pool_of(job.kind.queue)}", _whose(job)):
            self._found.busy_s[whose] = self._found.busy_s.get(whose, 0.0) + took_us / 1e6
        self._slots.end(job)
        self._gates.leave(job)
        failed = self._chances.fails(job.kind)
        if failed and job.failures + 1 < job.kind.attempts_max:
            self._env.process(self._retried(job))
        else:
            self._ended(job)
        self._hand_over(list(job.gates))
        self._claim()

    def _retried(self, job: SimulatedJob) -> Process:
        job.failures += 1
        yield self._env.timeout(self._chances.retry_us(job.failures))
        job.due_us = self._now_us
        self._make_due(job)

    def _ended(self, job: SimulatedJob) -> None:
        self._live[job.row] -= 1
        self._undone[_whose(job)] -= 1
        if not self._undone[_whose(job)] and _whose(job) in self._drains:
            self._drains.discard(_whose(job))
            if not self._drains and self._ended_us is not None:
                self._found.drained_s = (self._now_us - self._ended_us) / 1e6

    # --- around it -------------------------------------------------------------------------------------

    def _outage(self) -> Process:
        """What runs when it begins comes to its end; nothing starts until it is over."""
        outage = self._plan.outage
        assert outage is not None
        yield self._env.timeout(round(outage.starts_s * 1_000_000))
        self._is_up = False
        yield self._env.timeout(round(outage.lasts_s * 1_000_000))
        self._is_up, self._ended_us = True, self._now_us
        self._up.succeed()
        yield self._env.timeout(0)  # the schedules look first
        self._drains = {name for name, number in self._undone.items() if number}
        self._hand_over(self._gates.waiting())
        self._claim()

    def _watched(self) -> Process:
        while True:
            self._found.backlog.append(self._backlog)
            yield self._env.timeout(round(self._found.every_s * 1e6))

    @property
    def _now_us(self) -> int:
        return int(self._env.now)


def _whose(job: SimulatedJob) -> str:
    """The key whose time it takes; without one, its kind."""
    return f"{job.kind.key}/{job.entity}" if job.kind.key is not None else f"jobs {job.kind.name}"
