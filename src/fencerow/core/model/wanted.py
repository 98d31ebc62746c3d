"""What an operator wants of a running worker, and what the worker says it does. Pure: nothing here is sent or kept.

`wanted` is the whole state, never a difference, so that two operators cannot each get half of their way: an
order is made from the state that was read, and is written only if that is still the state (see `order_worker`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fencerow.core.errors import InvalidInput, OrderRefused
from fencerow.db.text import check_text

SLOTS_MAX = 10_000
QUEUES_MAX = 1_000
QUEUE_LENGTH_MAX = 100
LEAVE_S_MAX = 30 * 24 * 3600.0


class SlotGroup(msgspec.Struct, frozen=True):
    """Queues that use slots together; mostly one queue with slots of its own."""

    queues: tuple[str, ...]
    slots: int


class Leave(msgspec.Struct, frozen=True):
    """Finish the running jobs, then end. Jobs that still run `within_s` seconds after the worker read the
    order are released.

    None: the worker's own limit, the longest timeout of its jobs and a margin. 0: at once.
    """

    within_s: float | None = None


class Wanted(msgspec.Struct, frozen=True):
    """Which queues a worker should serve, with how many slots; whether it claims jobs, and whether it should leave."""

    slot_groups: tuple[SlotGroup, ...]
    paused: bool = False
    leave: Leave | None = None


class SlotGroupNow(msgspec.Struct, frozen=True):
    """The present state of a slot group: claimed jobs that run and that wait for a slot, and how many jobs end per
    second."""

    queues: tuple[str, ...]
    slots: int
    running: int = 0
    waiting: int = 0
    pace: float = 0.0


class Failing(msgspec.Struct, frozen=True):
    """Work in the background that fails: the last error, and how often in a row. It is tried again; jobs go on."""

    name: str
    tries: int
    error: str


class Blocked(msgspec.Struct, frozen=True):
    """How long the event loop did not answer, which job blocked it, if that is known, and where its code was.

    `is_starved`: no job did, and the loop's thread waited for a processor for most of that time.
    """

    seconds: float
    job_id: str | None = None
    job: str | None = None
    where: str = ""
    is_over: bool = False
    is_starved: bool = False

    @property
    def by(self) -> str:
        """What blocked the loop, in words."""
        if self.job_id:
            return f"job {self.job_id} ({self.job})"
        return "too little processor time" if self.is_starved else "code of no known job"


class Descriptors(msgspec.Struct, frozen=True):
    """How many file descriptors the worker's process has open, and its soft limit: it cannot open more."""

    open: int
    limit: int


class OverdueAttempt(msgspec.Struct, frozen=True, array_like=True):
    """An attempt that its own worker cannot end, by the clock of the worker's process.

    `begun`: it runs, and is past its time limit by more than a lease. Otherwise it waited in the worker as
    long as that, and never starts.
    """

    job_id: str
    attempt: int
    begun: bool


class Stated(msgspec.Struct, frozen=True):
    """What a worker reported about itself at its last renewal. `version` is that of the last order that it
    has carried out."""

    version: int
    slot_groups: tuple[SlotGroupNow, ...]
    paused: bool = False
    leaving: bool = False
    held: int = 0  # jobs it holds: running, waiting for a slot, or ended and not yet written
    memory_bytes: int | None = None
    begun_max: int | None = None  # of those it holds, so many may have begun; None: all
    failing: tuple[Failing, ...] = ()
    blocked: Blocked | None = None  # now, or within the last minutes
    overdue: tuple[OverdueAttempt, ...] = ()  # others may end these
    descriptors: Descriptors | None = None  # where they can be counted
    shortage: str | None = None  # what it was short of, now or within the last minutes
    too_large: str | None = None  # what was too much at once for the database, within the last minutes
    clock_behind_s: float = 0.0  # how far the database's clock went back; it takes jobs that were due before


class OrderedChange(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asks for. Each is what shall hold afterwards, so that asking twice changes nothing more.

    `slots`: of a worker whose queues use them together. `queues`: served from now on, with slots of their own, or with
    None in the one slot group that there is. `remove`: not served any more.
    """

    slots: int | None = None
    queues: Mapping[str, int | None] = {}
    remove: Sequence[str] = ()
    paused: bool | None = None
    leave: Leave | None = None


def wanted_of(wanted: Wanted | None, stated: Stated) -> Wanted:
    """What holds now: the last order, or what the worker was started with while there was none."""
    if wanted is not None:
        return wanted
    groups = tuple(SlotGroup(each.queues, each.slots) for each in stated.slot_groups)
    return Wanted(groups, stated.paused, Leave() if stated.leaving else None)


def changed(now: Wanted, change: OrderedChange) -> Wanted:
    """The state that the change leads to; the very same when there is nothing to change.

    Raises:
        InvalidInput: a number or name cannot be used, or nothing would be left to serve.
        OrderRefused: the worker is leaving. It can only be told to leave sooner.
    """
    checked(change)
    if now.leave is not None:
        return _leaving(now, now.leave, change)
    groups = _without(now.slot_groups, change.remove)
    for queue, slots in change.queues.items():
        groups = _with(groups, queue, slots)
    if change.slots is not None:
        groups = _resized(groups, change.slots)
    if not groups:
        raise InvalidInput(
            "no queue would be left",
            "a worker without a queue would be alive and do nothing",
            "pause it, or let it drain and end",
        )
    paused = now.paused if change.paused is None else change.paused
    return Wanted(groups, paused, change.leave)


def checked(change: OrderedChange) -> OrderedChange:
    """The change, if every number and name in it can be used.

    Raises:
        InvalidInput: one cannot.
    """
    for queue in (*change.queues, *change.remove):
        check_text(queue, "queue", QUEUE_LENGTH_MAX)
    for slots in (change.slots, *change.queues.values()):
        if slots is not None:
            _check_slots(slots)
    if len(change.queues) > QUEUES_MAX:
        raise InvalidInput(f"{len(change.queues)} queues", f"at most {QUEUES_MAX} are served", "name fewer")
    both = sorted(set(change.queues) & set(change.remove))
    if both:
        raise InvalidInput(f"queue {both[0]!r} is added and removed", "one of them is meant", "leave one out")
    if change.leave is not None and change.leave.within_s is not None:
        _check_within(change.leave.within_s)
    return change


def _leaving(now: Wanted, leave: Leave, change: OrderedChange) -> Wanted:
    if change.leave is None:
        raise OrderRefused(
            "the worker is leaving",
            "it claims no more jobs, so it cannot be changed",
            "start another one; this one can only leave sooner",
        )
    soonest = min(
        (each.within_s for each in (leave, change.leave) if each.within_s is not None), default=None
    )
    return Wanted(now.slot_groups, now.paused, Leave(soonest))


def _without(groups: tuple[SlotGroup, ...], removed: Sequence[str]) -> tuple[SlotGroup, ...]:
    left = (SlotGroup(tuple(q for q in each.queues if q not in removed), each.slots) for each in groups)
    return tuple(each for each in left if each.queues)


def _with(groups: tuple[SlotGroup, ...], queue: str, slots: int | None) -> tuple[SlotGroup, ...]:
    if slots is not None:
        if any(each == SlotGroup((queue,), slots) for each in groups):
            return groups
        alone = next((each for each in groups if each.queues == (queue,)), None)
        if alone is not None:
            return tuple(SlotGroup((queue,), slots) if each is alone else each for each in groups)
        return (*_without(groups, (queue,)), SlotGroup((queue,), slots))
    if any(queue in each.queues for each in groups):
        return groups
    if len(groups) != 1:
        raise InvalidInput(
            f"queue {queue!r} was given no slots",
            f"this worker has {len(groups)} groups of slots, so it is not clear which of them it would join",
            f"give it slots of its own: {queue}:5",
        )
    return (SlotGroup((*groups[0].queues, queue), groups[0].slots),)


def _resized(groups: tuple[SlotGroup, ...], slots: int) -> tuple[SlotGroup, ...]:
    if len(groups) != 1:
        each = ", ".join(f"{'+'.join(group.queues)}:{group.slots}" for group in groups)
        raise InvalidInput(
            f"{slots} slots were asked for all queues together",
            f"this worker's queues have slots of their own: {each}",
            f"name the queue: {groups[0].queues[0] if groups else 'mail'}:{slots}",
        )
    return (SlotGroup(groups[0].queues, slots),)


def _check_slots(slots: Any) -> None:
    if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= SLOTS_MAX:
        raise InvalidInput(
            f"{ascii(slots)[:40]} slots were asked for",
            f"a whole number from 1 to {SLOTS_MAX} is expected",
            "to stop claims pause the worker, or remove the queue",
        )


def _check_within(within_s: Any) -> None:
    number = isinstance(within_s, (int, float)) and not isinstance(within_s, bool)
    if not number or not 0 <= within_s <= LEAVE_S_MAX:
        raise InvalidInput(
            f"the worker was asked to leave within {ascii(within_s)[:40]} s",
            f"seconds from 0 to {LEAVE_S_MAX:.0f} are expected",
            "pass a number of seconds",
        )
