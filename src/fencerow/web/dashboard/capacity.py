"""Whether the slots of the workers suffice for what comes, by the formulas of `fencerow plan`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fencerow.core.model.worker import WorkerRecord
from fencerow.planning.formulas import (
    HOUR_MINUTES,
    attempts_mean,
    capacity_per_hour,
    drain_minutes,
    exact,
    load_minutes,
    slots_needed,
)
from fencerow.planning.plan import By
from fencerow.web.dashboard.counting.capacity import LOOKED_MAX, ComingJobs, Took

ATTEMPTS_MAX = 3  # as a plan has it that does not say otherwise
Kind = tuple[str, str]  # a queue and a name


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What would be otherwise: so many times the arrivals, so many times the slots, and an outage before."""

    arrivals: Fraction = Fraction(1)
    slots: Fraction = Fraction(1)
    outage_s: int = 0


@dataclass(frozen=True, slots=True)
class KindLoad:
    """The jobs of one queue and name. `minutes`: what one takes with all its attempts; None: none has ended lately."""

    queue: str
    name: str
    per_hour: Fraction
    took: Took | None
    minutes: Fraction | None

    @property
    def slots(self) -> float | None:
        """How many slots it keeps busy."""
        return None if self.minutes is None else float(self.per_hour * self.minutes / HOUR_MINUTES)


@dataclass(frozen=True, slots=True)
class SharedSlots:
    """Queues whose jobs run in the same slots. `load` and `room`: minutes of work in an hour."""

    queues: tuple[str, ...]
    slots: Fraction
    kinds: tuple[KindLoad, ...]
    load: Fraction
    waiting: int
    outage_s: int

    @property
    def per_hour(self) -> Fraction:
        """How many jobs come in an hour."""
        return sum((each.per_hour for each in self.kinds), Fraction())

    @property
    def most_per_hour(self) -> Fraction | None:
        """How many of such jobs the slots do in an hour; None: nothing is known of them."""
        return capacity_per_hour(self.slots, self.load / self.per_hour) if self.load else None

    @property
    def used(self) -> Fraction | None:
        """The share of the slots that the load takes; None: there are no slots."""
        return self.load / (HOUR_MINUTES * self.slots) if self.slots else None

    @property
    def slots_needed(self) -> int:
        """The fewest slots that do this load."""
        return slots_needed(self.load)

    @property
    def keeps_up(self) -> bool:
        """Whether the slots can do what comes."""
        return self.load <= HOUR_MINUTES * self.slots

    @property
    def backlog(self) -> Fraction:
        """How many jobs wait: now, and those of the outage that is thought of."""
        return self.waiting + self.per_hour * self.outage_s / 3600

    @property
    def drain_s(self) -> float | None:
        """How long the backlog lasts while more comes; None: for ever, or nothing is known of its jobs."""
        if not self.load:
            return None if self.backlog else 0.0
        found = drain_minutes(self.backlog * self.load / self.per_hour, self.load, self.slots)
        return None if found is None else float(found * 60)


def loads(came: Sequence[ComingJobs], took: Sequence[Took], window_s: float, by: By) -> list[KindLoad]:
    """What comes in an hour, and what it takes, the most work first."""
    durations = {(each.queue, each.name): each for each in took}
    found = []
    for each in came:
        ended = durations.get((each.queue, each.name))
        minutes = None if ended is None else _minutes(ended, by)
        per_hour = exact(each.jobs) * 3600 / exact(_span_s(each, window_s))
        found.append(KindLoad(each.queue, each.name, per_hour, ended, minutes))
    return sorted(found, key=lambda each: -(each.slots or 0.0))


def pools(
    kinds: Sequence[KindLoad], workers: Iterable[WorkerRecord], waiting: Mapping[str, int], what_if: WhatIf
) -> list[SharedSlots]:
    """All pools, the fullest first. Queues that share slots somewhere are counted together."""
    of_queue = _together(workers)
    for queue in (*(each.queue for each in kinds), *waiting):
        of_queue.setdefault(queue, _Slots([queue]))
    found = [
        _pool(each, kinds, waiting, what_if) for each in {id(one): one for one in of_queue.values()}.values()
    ]
    return sorted(found, key=lambda each: (each.keeps_up, -(each.used or 0), each.queues))


@dataclass(slots=True)
class _Slots:
    queues: list[str]
    slots: int = 0


def _together(workers: Iterable[WorkerRecord]) -> dict[str, _Slots]:
    of_queue: dict[str, _Slots] = {}
    for queues, slots in _groups(workers):
        joined = _Slots([], slots)
        for queue in queues:
            other = of_queue.get(queue, _Slots([queue]))
            if other is not joined:
                joined.queues += other.queues
                joined.slots += other.slots
                of_queue |= dict.fromkeys(other.queues, joined)
    return of_queue


def _groups(workers: Iterable[WorkerRecord]) -> Iterable[tuple[Sequence[str], int]]:
    for worker in workers:
        if not worker.claims:
            continue
        if worker.stated is not None:
            yield from ((tuple(group.queues), group.slots) for group in worker.stated.slot_groups)
        elif worker.queues and worker.slots:
            yield tuple(worker.queues), worker.slots


def _pool(
    each: _Slots, kinds: Sequence[KindLoad], waiting: Mapping[str, int], what_if: WhatIf
) -> SharedSlots:
    own = [
        KindLoad(kind.queue, kind.name, kind.per_hour * what_if.arrivals, kind.took, kind.minutes)
        for kind in kinds
        if kind.queue in each.queues
    ]
    known = {str(number): kind for number, kind in enumerate(own) if kind.minutes is not None}
    load = load_minutes(
        {name: kind.per_hour for name, kind in known.items()},
        {name: kind.minutes or 0 for name, kind in known.items()},
    )
    return SharedSlots(
        tuple(sorted(each.queues)),
        each.slots * what_if.slots,
        tuple(own),
        load,
        sum(waiting.get(queue, 0) for queue in each.queues),
        what_if.outage_s,
    )


def _minutes(took: Took, by: By) -> Fraction:
    seconds = took.mean_s if by is By.MEAN else max(took.p95_s, took.mean_s)
    return (
        exact(round(seconds, 6)) / 60 * attempts_mean(round(min(took.failure_share, 0.99), 6), ATTEMPTS_MAX)
    )


def _span_s(came: ComingJobs, window_s: float) -> float:
    """The time in which they came: shorter where more came than were looked at."""
    if came.looked < LOOKED_MAX or came.first_us is None:
        return window_s
    return max((came.now_us - came.first_us) / 1e6, 0.001)
