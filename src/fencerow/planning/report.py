"""What a plan comes to, by closed formulas: what keeps up, how many entities fit, how long a backlog lasts. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fencerow.planning.bounds import BoundKind, CapacityBound, bounds_of
from fencerow.planning.formulas import HOUR_MINUTES
from fencerow.planning.plan import By, OutagePlan, Plan
from fencerow.schedules.definition import Overlap
from fencerow.schedules.misfire import Misfire
from fencerow.schedules.options import SchedulePlan


@dataclass(frozen=True, slots=True)
class GroupCapacity:
    """For how many entities of one kind all bounds suffice. `entities_max` None: for as many as one likes."""

    group: str
    entities: int
    entities_max: int | None
    bound: CapacityBound | None


@dataclass(frozen=True, slots=True)
class BoundDrain:
    """How long one bound needs for the backlog of an outage; None: it never does."""

    bound: CapacityBound
    drain_s: Fraction | None


@dataclass(frozen=True, slots=True)
class OutageReport:
    """What an outage leaves behind. `backlog`: by kind, how many jobs of each entity wait at its end; `jobs`: all.

    `slots_needed`: of which slots of workers so many would drain it in the time that was asked for.
    """

    outage: OutagePlan
    backlog: Mapping[str, Fraction]
    jobs: Fraction
    drains: tuple[BoundDrain, ...]
    slots_needed: tuple[tuple[CapacityBound, int], ...]

    @property
    def slowest(self) -> BoundDrain:
        """The bound that needs longest."""
        return max(self.drains, key=lambda each: math.inf if each.drain_s is None else each.drain_s)


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """All of it."""

    by: By
    bounds: tuple[CapacityBound, ...]
    groups: tuple[GroupCapacity, ...]
    outage: OutageReport | None

    @property
    def ok(self) -> bool:
        """Whether all bounds keep up, and an outage is over in the time that was asked for."""
        return all(each.keeps_up for each in self.bounds) and not self.is_late

    @property
    def is_late(self) -> bool:
        """Whether the backlog of the outage lasts longer than was asked for."""
        if self.outage is None or self.outage.outage.drained_within_s is None:
            return False
        drain_s = self.outage.slowest.drain_s
        return drain_s is None or drain_s > self.outage.outage.drained_within_s


def calculated(plan: Plan, by: By) -> CapacityReport:
    """By closed formulas, which take everything in the mean: no job waits for another one by chance."""
    bounds = bounds_of(plan, by)
    groups = tuple(_group(each.name, each.entities, bounds) for each in plan.keys)
    outage = None if plan.outage is None else _outage(plan, plan.outage, bounds)
    return CapacityReport(by, tuple(bounds), groups, outage)


def missed(schedule: SchedulePlan | None, rate_per_hour: Fraction, lasts_s: Fraction) -> Fraction:
    """How many jobs of one entity come, in the mean, at the end of a time in which no worker ran.

    Submits go on meanwhile. Of the fires of a schedule its rules say which are made up.
    """
    fires = rate_per_hour * lasts_s / 3600
    if schedule is None or schedule.misfire is Misfire.ALL:
        found = fires
    elif schedule.misfire is Misfire.ONE:
        found = min(Fraction(1), fires)
    else:
        found = min(fires, rate_per_hour * Fraction(str(schedule.late_s)) / 3600)
    return min(Fraction(1), found) if schedule and schedule.overlap is Overlap.SKIP else found


def _group(name: str, entities: int, bounds: Sequence[CapacityBound]) -> GroupCapacity:
    found = [(most, bound) for bound in bounds if (most := bound.entities_max(name)) is not None]
    most, bound = min(found, key=lambda each: each[0], default=(None, None))
    return GroupCapacity(name, entities, most, bound)


def _outage(plan: Plan, outage: OutagePlan, bounds: Sequence[CapacityBound]) -> OutageReport:
    backlog = {job.name: missed(job.schedule, job.rate_per_hour, outage.lasts_s) for job in plan.jobs}
    within_s = outage.drained_within_s
    return OutageReport(
        outage,
        backlog,
        sum((plan.entities_of(job) * backlog[job.name] for job in plan.jobs), Fraction()),
        tuple(BoundDrain(each, _seconds(each.drain_hours(backlog))) for each in bounds),
        () if within_s is None else _slots_needed(bounds, backlog, within_s),
    )


def _slots_needed(
    bounds: Sequence[CapacityBound], backlog: Mapping[str, Fraction], within_s: Fraction
) -> tuple[tuple[CapacityBound, int], ...]:
    """So many that what comes, and the backlog, are done in that time."""
    return tuple(
        (each, math.ceil((each.load + each.waiting(backlog) / (within_s / 3600)) / HOUR_MINUTES))
        for each in bounds
        if each.kind is BoundKind.SLOTS
    )


def _seconds(hours: Fraction | None) -> Fraction | None:
    return None if hours is None else hours * 3600
