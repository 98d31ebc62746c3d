"""A plan: who submits what, how long it takes, and what there is to do it with. Values; checked by `reading.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from fencerow.limits.definition import Limit
from fencerow.planning.formulas import attempts_mean
from fencerow.schedules.options import SchedulePlan

ALL_QUEUES = ""  # the slots that all queues of a worker share


class By(StrEnum):
    """Which duration of a job counts: the mean says what will happen, the p95 is careful."""

    P95 = "p95"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """Exclusive keys of one kind, one for each entity: of each, `at_once` jobs run at a time."""

    name: str
    entities: int
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class JobPlan:
    """Jobs of one kind. `rate_per_hour`: for each entity of `key`; without a key, for all of them together.

    `schedule`: what makes them, or None: they are submitted, at any time.
    """

    name: str
    rate_per_hour: Fraction
    mean_s: Fraction
    p95_s: Fraction
    queue: str = "default"
    key: str | None = None
    limits: tuple[str, ...] = ()
    failure_share: Fraction = Fraction()
    attempts_max: int = 3
    schedule: SchedulePlan | None = None

    def duration_s(self, by: By) -> Fraction:
        """Of one attempt."""
        return self.p95_s if by is By.P95 else self.mean_s

    def work_minutes(self, by: By) -> Fraction:
        """Of one job, with all the attempts that it takes."""
        return self.duration_s(by) * self.attempts / 60

    @property
    def attempts(self) -> Fraction:
        """How many it takes in the mean."""
        return attempts_mean(self.failure_share, self.attempts_max)


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """So many worker processes, each with these slots: one number for all queues (`ALL_QUEUES`), or one for each."""

    processes: int
    slots: Mapping[str, int]

    def pool_of(self, queue: str) -> str:
        """Whose slots run the jobs of a queue."""
        return queue if queue in self.slots else ALL_QUEUES


@dataclass(frozen=True, slots=True)
class OutagePlan:
    """No worker runs from `starts_s` on, for `lasts_s`. `drained_within_s`: what its backlog may take after that."""

    lasts_s: Fraction
    starts_s: Fraction = Fraction()
    drained_within_s: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it. `horizon_s`: how long a simulation goes on."""

    jobs: tuple[JobPlan, ...]
    keys: tuple[KeyGroup, ...]
    limits: tuple[Limit, ...]
    workers: WorkerPlan
    outage: OutagePlan | None
    horizon_s: Fraction
    values: Mapping[str, int | str] = field(default_factory=dict[str, int | str])  # as `values_of` has them

    def values_of(self, limit: Limit) -> int | str | None:
        """How many keys a limit per key has, or the exclusive key whose entities they are; None: it has none."""
        return self.values.get(limit.name, limit.name) if limit.per_key else None

    def group(self, name: str) -> KeyGroup:
        """The keys of this name."""
        return next(each for each in self.keys if each.name == name)

    def entities_of(self, job: JobPlan) -> int:
        """How many submit jobs of this kind."""
        return 1 if job.key is None else self.group(job.key).entities

    def with_entities(self, group: str, entities: int) -> Plan:
        """The same with another number of entities."""
        keys = tuple(replace(each, entities=entities) if each.name == group else each for each in self.keys)
        return replace(self, keys=keys)
