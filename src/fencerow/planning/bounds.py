"""What bounds the jobs of a plan: keys, slots and limits, each with its load and its room. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from fencerow.limits.definition import FLEET, Limit
from fencerow.limits.rate import Rate
from fencerow.planning.formulas import HOUR_MINUTES, drain_hours, exact, fit_max
from fencerow.planning.plan import ALL_QUEUES, By, JobPlan, Plan


class BoundKind(StrEnum):
    """`key`: what runs at a time of each entity. `slots`: of the workers. `limit`: how many run under it at once.
    `rate`: its starts."""

    KEY = "key"
    SLOTS = "slots"
    LIMIT = "limit"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class CapacityBound:
    """Something that jobs share. `room`: minutes of work in an hour, or starts in an hour if it is a rate.

    `group`: it is counted for each entity of these keys alone; None: for all jobs together. `slots_each`: slots of one
    worker process, where it is one of slots. `values`: so many keys have this room together, each an even share.
    """

    kind: BoundKind
    name: str
    room: Fraction
    jobs: tuple[JobPlan, ...]
    plan: Plan
    by: By
    group: str | None = None
    slots_each: int | None = None
    values: int | None = None

    @property
    def load(self) -> Fraction:
        """What comes in an hour, in the unit of `room`."""
        return sum((self._count(job) * self.each(job) for job in self.jobs), Fraction())

    @property
    def used(self) -> Fraction:
        """The share of the room that the load takes."""
        return self.load / self.room

    @property
    def left(self) -> Fraction:
        """What is left in an hour to catch up with a backlog."""
        return max(Fraction(), self.room - self.load)

    @property
    def keeps_up(self) -> bool:
        """Whether it can do what comes. If not, its backlog grows for ever."""
        return self.load <= self.room

    @property
    def slots_needed(self) -> int | None:
        """The fewest slots of workers that do this load; None: they do not bound here."""
        return None if self.slots_each is None else math.ceil(self.load / HOUR_MINUTES)

    @property
    def processes_needed(self) -> int | None:
        """The fewest worker processes of so many slots."""
        needed = self.slots_needed
        return None if needed is None or self.slots_each is None else math.ceil(needed / self.slots_each)

    def each(self, job: JobPlan) -> Fraction:
        """What the jobs of this kind add in an hour, those of one entity or of nobody."""
        return job.rate_per_hour * self.size(job)

    def size(self, job: JobPlan) -> Fraction:
        """What one job takes of the room, with all its attempts."""
        return job.attempts if self.kind is BoundKind.RATE else job.work_minutes(self.by)

    def entities_max(self, group: str) -> int | None:
        """How many entities of these keys fit, if all else stays; None: as many as one likes."""
        if self.group is not None:
            return 0 if self.group == group and not self.keeps_up else None
        of_group = [job for job in self.jobs if job.key == group]
        each = sum((self.each(job) for job in of_group), Fraction())
        besides = self.load - each * self.plan.group(group).entities if of_group else Fraction()
        return fit_max(self.room, each, besides) if each else None

    def drain_hours(self, backlog: Mapping[str, Fraction]) -> Fraction | None:
        """How long it needs for a backlog: by kind, how many jobs of each entity. None: for ever."""
        return drain_hours(self.waiting(backlog), self.load, self.room)

    def waiting(self, backlog: Mapping[str, Fraction]) -> Fraction:
        """What a backlog takes of the room."""
        return sum((self._count(job) * backlog[job.name] * self.size(job) for job in self.jobs), Fraction())

    def _count(self, job: JobPlan) -> int:
        """How many submit jobs of this kind here."""
        return 1 if self.group is not None else self.plan.entities_of(job)


def bounds_of(plan: Plan, by: By) -> list[CapacityBound]:
    """All that bounds the jobs of a plan."""
    return [*_keys(plan, by), *_pools(plan, by), *_limits(plan, by)]


def _keys(plan: Plan, by: By) -> Iterator[CapacityBound]:
    for group in plan.keys:
        jobs = tuple(job for job in plan.jobs if job.key == group.name)
        room = Fraction(group.at_once * HOUR_MINUTES)
        yield CapacityBound(BoundKind.KEY, group.name, room, jobs, plan, by, group.name)


def _pools(plan: Plan, by: By) -> Iterator[CapacityBound]:
    """The slots that queues share, or that one of them has."""
    for pool, slots in plan.workers.slots.items():
        jobs = tuple(job for job in plan.jobs if plan.workers.pool_of(job.queue) == pool)
        room = Fraction(plan.workers.processes * slots * HOUR_MINUTES)
        name = "all queues" if pool == ALL_QUEUES else pool
        yield CapacityBound(BoundKind.SLOTS, name, room, jobs, plan, by, slots_each=slots)


def _limits(plan: Plan, by: By) -> Iterator[CapacityBound]:
    for limit in plan.limits:
        jobs = tuple(job for job in plan.jobs if is_bound(job, limit))
        found = plan.values_of(limit)
        group, values = (None, found) if isinstance(found, int) else (found, None)
        rooms = {
            BoundKind.LIMIT: None if limit.at_once is None else Fraction(limit.at_once * HOUR_MINUTES),
            BoundKind.RATE: None if limit.rate is None else per_hour(limit.rate),
        }
        for kind, room in rooms.items():
            if room is not None:
                room *= values or 1
                yield CapacityBound(kind, limit.name, room, jobs, plan, by, group, values=values)


def is_bound(job: JobPlan, limit: Limit) -> bool:
    """Whether a limit bounds the jobs of this kind."""
    if limit.is_of_queues:
        return limit.name == FLEET or limit.queue == job.queue
    return limit.name in job.limits


def per_hour(rate: Rate) -> Fraction:
    """How many starts a rate lets through in an hour."""
    return exact(rate.count) * 3600 / exact(rate.per_s)
