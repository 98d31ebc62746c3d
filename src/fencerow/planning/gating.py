"""Turns at gates, in memory: the same choice that a hand-over makes in the database, on the same records."""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fencerow.limits.definition import Limit
from fencerow.limits.locked import LockedLimit
from fencerow.limits.named import NamedLimit
from fencerow.limits.room import LimitState
from fencerow.planning.plan import JobPlan, Plan
from fencerow.turns.gates import KEY, LIMIT, Candidate, Gate, choose
from fencerow.turns.handing import BESIDE
from fencerow.turns.limiting import Held


@dataclass(slots=True)
class SimulatedJob:
    """A job of a simulation. `gates`: all at which it needs a turn; `at`: where it waits. Instants are microseconds."""

    number: int
    kind: JobPlan
    entity: int
    due_us: int
    gates: tuple[str, ...] = ()
    at: str = ""
    failures: int = 0
    row: str = field(default="")  # of the schedule that made it

    @property
    def order(self) -> tuple[int, int]:
        """Who goes first."""
        return self.due_us, self.number


class PlannedGates:
    """Who waits at which gate, how many have a turn there, and what limits remember."""

    def __init__(self, plan: Plan) -> None:
        self._at_once = {group.name: group.at_once for group in plan.keys}
        self._limits = {limit.name: limit for limit in plan.limits}
        self._values = {limit.name: plan.values_of(limit) for limit in plan.limits}
        self._waiting: dict[str, list[tuple[tuple[int, int], SimulatedJob]]] = defaultdict(list)
        self._taken: Counter[str] = Counter()
        self._states: dict[str, LimitState] = {}

    def gates_of(self, kind: JobPlan, entity: int, row: str, number: int) -> tuple[str, ...]:
        """All at which such a job needs a turn. `row`: of a schedule whose jobs wait for one another; `number`: of the
        job, by which those without a key have one of the keys of a limit in turns."""
        key = f"{KEY}{kind.key}/{entity}" if kind.key is not None else f"{KEY}{row}" if row else ""
        named = (self._named(name, entity if kind.key is not None else number) for name in kind.limits)
        return (*((key,) if key else ()), *(f"{LIMIT}{each}" for each in named))

    def _named(self, name: str, whose: int) -> str:
        """A limit as a job names it: one of its keys, if it has some."""
        values = self._values[name]
        if values is None:
            return name
        return f"{name}/{whose % values if isinstance(values, int) else whose}"

    def arrive(self, job: SimulatedJob) -> None:
        """It waits at its first gate."""
        self._wait(job, job.gates[0])

    def leave(self, job: SimulatedJob) -> None:
        """It gives its turns up."""
        self._taken.subtract(job.gates)

    def hand_over(self, names: Iterable[str], now_us: int) -> tuple[list[SimulatedJob], dict[str, int]]:
        """Give what is free at these gates; who got a turn, and where time makes more room, and when."""
        given: list[SimulatedJob] = []
        again_us: dict[str, int] = {}
        todo = set(names)
        while todo:
            gates = {name: self._opened(name, now_us) for name in sorted(self._with_those_beside(todo))}
            found = {str(job.number): job for job in self._first(gates)}
            choice = choose([self._candidate(job) for job in found.values()], gates)
            for number in choice.given:
                self._remove(found[number])
                self._taken.update(found[number].gates)
                given.append(found[number])
            for number, gate in choice.sent.items():
                self._remove(found[number])
                self._wait(found[number], gate)
            again_us |= self._kept(gates.values())
            todo = choice.again if choice.given or choice.sent else set()
        return given, again_us

    def waiting(self) -> list[str]:
        """The gates at which somebody waits."""
        return [name for name, found in self._waiting.items() if found]

    def _with_those_beside(self, names: set[str]) -> set[str]:
        beside = (job.gates for name in names for _, job in self._waiting[name][:BESIDE])
        return names.union(*beside)

    def _first(self, gates: Mapping[str, Gate]) -> list[SimulatedJob]:
        """As many of each gate as are wanted there."""
        return [job for name, gate in gates.items() for _, job in self._waiting[name][: gate.wanted]]

    def _candidate(self, job: SimulatedJob) -> Candidate:
        return Candidate(
            str(job.number), job.at, self._at_once_of(job), job.gates, (0, job.due_us, f"{job.number:012}")
        )

    def _opened(self, name: str, now_us: int) -> Gate:
        waiting, held = self._waiting[name], Held(self._taken[name])
        if name.startswith(KEY):
            return Gate(
                name, held, at_once=self._at_once_of(waiting[0][1]) if waiting and held.taken else None
            )
        plain = name.removeprefix(LIMIT)
        state = self._states.get(name, LimitState())
        rule = NamedLimit(LockedLimit(plain, self._limit(plain), state, state, now_us))
        return Gate(name, held, rule=rule)

    def _kept(self, gates: Iterable[Gate]) -> dict[str, int]:
        """What limits remember, and when they are to be looked at again."""
        again: dict[str, int] = {}
        for gate in gates:
            if isinstance(gate.rule, NamedLimit):
                self._states[gate.name] = gate.rule.locked.after(gate.given, waits=gate.waits).state
                if not gate.is_free and gate.again_us is not None and self._waiting[gate.name]:
                    again[gate.name] = gate.again_us
        return again

    def _limit(self, name: str) -> Limit:
        return self._limits.get(name) or self._limits[name.partition("/")[0]]

    def _at_once_of(self, job: SimulatedJob) -> int:
        return 1 if job.kind.key is None else self._at_once[job.kind.key]

    def _wait(self, job: SimulatedJob, gate: str) -> None:
        job.at = gate
        insort(self._waiting[gate], (job.order, job))

    def _remove(self, job: SimulatedJob) -> None:
        self._waiting[job.at].remove((job.order, job))
