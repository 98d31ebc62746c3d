"""What a reader of events put aside: tried again when it is due, parked when that does not help, redriven by people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fencerow.core.model.job import At
from fencerow.core.store.decoding import read_or, whole_or_none
from fencerow.db.run import Row, Steps, as_int, execute, operation
from fencerow.events.consumers import BATCH_ROWS, PartitionLease, Stored, lost, stored
from fencerow.events.groups import known_group
from fencerow.events.topics import check_group


@dataclass(frozen=True, slots=True)
class Asides:
    """What is put aside in a partition, parked events apart."""

    keys: frozenset[str]
    failed: int
    due_in_s: float | None
    count: int


@operation(alone=True, repeatable=True, writes="")
def waiting(lease: PartitionLease) -> Steps[Asides]:
    """What is put aside in the partition and not parked."""
    row = (yield from execute("waiting_asides", grp=lease.group, part=lease.part))[0]
    keys = [] if row[0] is None else msgspec.json.decode(str(row[0]), type=list[str])
    due_in_s = None if row[2] is None else max(0.0, as_int(row[2]) / 1e6)
    return Asides(frozenset(keys), as_int(row[1]), due_in_s, as_int(row[3]))


@operation(alone=True, repeatable=True, writes="")
def due_asides(lease: PartitionLease, *, limit: int = BATCH_ROWS) -> Steps[list[Stored]]:
    """Events put aside that are due: of each key the first alone."""
    rows = yield from execute("due_asides", grp=lease.group, part=lease.part, limit=limit)
    return [stored((row[1], row[0], *row[3:]), whole_or_none(row[2]) or 0) for row in rows]


@operation()
def try_aside(lease: PartitionLease, seq: int) -> Steps[int | None]:
    """Count a delivery before it happens: who dies of it cannot say so afterwards. None: it waits no more.

    Raises:
        PartitionLost: the partition has another reader.
    """
    yield from _hold(lease)
    rows = yield from execute("try_aside", grp=lease.group, seq=seq)
    return as_int(rows[0][0]) if rows else None


@operation()
def end_aside(lease: PartitionLease, seq: int) -> Steps[None]:
    """Acknowledge an event that was put aside, in a transaction with a handler's effects if it has one.

    Raises:
        PartitionLost: the partition has another reader, or the event waits no more. Nothing is changed.
    """
    yield from _hold(lease)
    if not (yield from execute("end_aside", grp=lease.group, seq=seq)):
        raise lost(lease)


@operation()
def postpone_aside(
    lease: PartitionLease, seq: int, *, delay_s: float, parked: bool, error: str
) -> Steps[bool]:
    """An event that was put aside has failed again: due later, or parked. False: it waits no more, so that is all.

    Raises:
        PartitionLost: the partition has another reader. Nothing is changed.
    """
    yield from _hold(lease)
    postponed = yield from execute(
        "postpone_aside", grp=lease.group, seq=seq, delay_s=delay_s, parked=parked, error=error
    )
    return bool(postponed)


@operation()
def hold_aside(lease: PartitionLease, seq: int, *, delay_s: float) -> Steps[None]:
    """A delivery of an event that was put aside came to nothing, and not by it: due later, and not counted.

    Raises:
        PartitionLost: the partition has another reader. Nothing is changed.
    """
    yield from _hold(lease)
    yield from execute("hold_aside", grp=lease.group, seq=seq, delay_s=delay_s)


# --- parked events -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parked:
    """An event that a group was not able to handle. `error` tells the last reason."""

    group: str
    event: Stored | None
    seq: int
    parked_at_us: int
    error: Any

    parked_at = At("parked_at_us")


@operation(alone=True, repeatable=True, writes="")
def parked(group: str | None = None, *, limit: int = BATCH_ROWS) -> Steps[list[Parked]]:
    """Parked events of one group or of all, those that were parked first."""
    return [_parked(row) for row in (yield from execute("parked_events", grp=group, limit=limit))]


@operation(repeatable=True)
def redrive(group: str, places: Sequence[int] | None = None) -> Steps[list[int]]:
    """Let parked events be delivered again, with a new budget: those at these places, or all of the group.

    Events of the same key that came later have gone on, so these come after them.

    Raises:
        UnknownGroup: there is no such group.
    """
    yield from known_group(check_group(group))
    wanted = None if places is None else list(places)
    return [as_int(row[0]) for row in (yield from execute("redrive_events", grp=group, places=wanted))]


@operation(repeatable=True)
def discard(group: str | None, places: Sequence[int] | None = None, *, age_s: float = 0.0) -> Steps[int]:
    """Forget parked events: of a group or of all, at these places, parked longer ago than this."""
    wanted = None if places is None else list(places)
    return len((yield from execute("discard_parked", grp=group, places=wanted, age_s=age_s)))


# --- inside --------------------------------------------------------------------------------------


def _hold(lease: PartitionLease) -> Steps[None]:
    """Keep others from taking the partition over until the transaction ends, in a statement before the change."""
    if not (yield from execute("hold_cursor", lease.named)):
        raise lost(lease)


def _parked(row: Row) -> Parked:
    group, seq, event_id, topic, key, deliveries, parked_at, error, data, headers, published_at = row
    event = (
        None
        if topic is None
        else stored((event_id, seq, topic, key, data, headers, published_at), whole_or_none(deliveries) or 0)
    )
    return Parked(
        str(group),
        event,
        as_int(seq),
        whole_or_none(parked_at) or 0,
        read_or(error, Any, str(error or "null")),
    )
