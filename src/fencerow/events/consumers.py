"""What a reader of events does: take partitions, read, acknowledge; what fails is put aside (asides.py).

Each partition of a group has one reader at a time, who reads it in order. Nothing is locked and no transaction is
open while events are handled; whoever acknowledges names the fence under which he read, and the place where the
cursor was. So a reader who was replaced changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fencerow.core.model.job import At
from fencerow.core.store.decoding import whole_or_none
from fencerow.db.run import Param, Row, Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.events.errors import PartitionLost
from fencerow.events.groups import known_group

BATCH_ROWS = 100
BATCH_BYTES = 8 * 1024 * 1024
SPAN = 20_000  # places that one look goes through, so that a group with few topics looks in short statements


@dataclass(frozen=True, slots=True)
class PartitionLease:
    """A partition that a reader holds: `fence` is what its acknowledgements name.

    `careful`: the reader before died in it, so an event may be what killed it.
    """

    group: str
    part: int
    holder: str
    fence: int
    cursor: int
    careful: bool = False

    @property
    def named(self) -> dict[str, Param]:
        """What every guarded statement is given."""
        return {"grp": self.group, "part": self.part, "holder": self.holder, "fence": self.fence}


@dataclass(frozen=True, slots=True)
class HeldPartitions:
    """What a reader holds after a look at its group, and how many partitions it should give back to others."""

    leases: tuple[PartitionLease, ...]
    surplus: int


@dataclass(frozen=True, slots=True)
class Stored:
    """An event in the log. `data` and `headers` are JSON text; `deliveries` is how often it was tried before.

    Instants that cannot be read, because something else wrote them, are 0.
    """

    id: int
    seq: int
    topic: str
    key: str | None
    data: str
    headers: str | None
    published_at_us: int
    deliveries: int = 0

    published_at = At("published_at_us")


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events of a partition in order. All of its events up to `seen` are among them, or were before."""

    events: tuple[Stored, ...]
    seen: int
    is_last: bool


class Aside(msgspec.Struct, frozen=True):
    """An event that the cursor passes undone: due after `delay_s`, or parked."""

    seq: int
    event_id: int
    key: str | None
    deliveries: int
    delay_s: float = 0.0
    parked: bool = False
    error: str | None = None


# --- who reads what ------------------------------------------------------------------------------


@operation(repeatable=True)
def hold_partitions(group: str, *, holder: str, name: str, lease_s: float) -> Steps[HeldPartitions]:
    """Say that this reader is alive, and take its fair share of what nobody alive reads. May be repeated.

    Raises:
        UnknownGroup: the group was removed.
    """
    yield from execute("renew_drainer", grp=group, holder=holder, name=name, lease_s=lease_s)
    live = max(1, as_int((yield from execute("live_drainers", grp=group))[0][0]))
    rows = yield from execute("read_cursors", grp=group)
    if not rows:
        yield from known_group(group)
    share = -(-len(rows) // live)
    mine = [_lease(group, holder, row) for row in rows if row[3] == holder]
    if len(mine) < share:
        # Dead readers are named by value: one that has come since is not among them.
        dead = sorted({str(row[3]) for row in rows if row[3] is not None and not row[5] and row[3] != holder})
        taken = yield from execute(
            "take_cursors", grp=group, holder=holder, dead=dead, count=share - len(mine)
        )
        mine += [
            PartitionLease(group, as_int(part), holder, as_int(fence), as_int(cursor), bool(careful))
            for part, cursor, fence, careful in taken
        ]
    return HeldPartitions(tuple(sorted(mine, key=lambda each: each.part)), max(0, len(mine) - share))


@operation(repeatable=True)
def give_partitions(group: str, parts: Sequence[int], *, holder: str) -> Steps[int]:
    """Give partitions back; others may take them at once."""
    return len((yield from execute("give_cursors", grp=group, parts=list(parts), holder=holder)))


@operation(repeatable=True)
def leave_group(group: str, parts: Sequence[int], *, holder: str) -> Steps[None]:
    """Give everything back and read no more."""
    yield from execute("give_cursors", grp=group, parts=list(parts), holder=holder)
    yield from execute("forget_drainer", grp=group, holder=holder)


@operation(alone=True, repeatable=True)
def forget_dead_drainers(*, age_s: float) -> Steps[None]:
    """Forget readers that died longer ago than this and hold nothing."""
    yield from execute("forget_dead_drainers", age_s=age_s)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as it stands: who reads it, whether that reader is alive, and how far it has come."""

    part: int
    cursor: int
    fence: int
    holder: str | None
    is_alive: bool
    trying: int | None


@operation(alone=True, repeatable=True, writes="")
def partitions(group: str) -> Steps[list[Partition]]:
    """The partitions of a group; none if there is no such group."""
    rows = yield from execute("read_cursors", grp=group)
    return [
        Partition(
            as_int(row[0]),
            as_int(row[1]),
            as_int(row[2]),
            text_or_none(row[3]),
            bool(row[5]),
            as_int_or_none(row[6]),
        )
        for row in rows
    ]


# --- reading and acknowledging -------------------------------------------------------------------


@operation(alone=True, repeatable=True, writes="")
def read_events(
    lease: PartitionLease,
    topics: Sequence[str],
    *,
    after: int,
    partitions: int,
    limit: int = BATCH_ROWS,
    bytes_max: int = BATCH_BYTES,
    span: int = SPAN,
) -> Steps[EventPage]:
    """The next events of the partition, in the order of their places."""
    rows = yield from execute(
        "read_events",
        topics=list(topics),
        after=after,
        part=lease.part,
        partitions=partitions,
        limit=limit,
        bytes_max=bytes_max,
        span=span,
    )
    events = tuple(stored(row[1:8]) for row in rows if row[1] is not None)
    head, found = as_int(rows[0][0]), as_int(rows[0][8])
    if events and (found == limit or found > len(events)):
        return EventPage(events, events[-1].seq, False)
    seen = min(head, after + span)
    return EventPage(events, max(after, seen), seen >= head)


@operation()
def advance(
    lease: PartitionLease, *, old: int, cursor: int, asides: Sequence[Aside] = (), careful: bool = False
) -> Steps[None]:
    """Acknowledge everything up to `cursor`, but for what is put aside. In a transaction with a handler's effects
    it makes them happen once.

    Raises:
        PartitionLost: the partition has another reader, or was replayed. Nothing is changed.
    """
    moved = yield from execute(
        "advance_cursor", {**lease.named, "old": old, "cursor": cursor, "careful": careful}
    )
    if not moved:
        raise lost(lease)
    if asides:
        yield from execute("put_aside", grp=lease.group, part=lease.part, asides=_document(asides))


@operation()
def bound_delivery(idle_s: float) -> Steps[None]:
    """As the first step of a transaction on a user's session: nobody is silent in it for longer."""
    yield from execute("bound_delivery", idle_ms=round(idle_s * 1000))


@operation(alone=True)
def try_event(lease: PartitionLease, seq: int) -> Steps[int]:
    """Count a try of the event at the head of a partition whose last reader died; returns which it is.

    Raises:
        PartitionLost: the partition has another reader.
    """
    rows = yield from execute("try_event", {**lease.named, "seq": seq})
    if not rows:
        raise lost(lease)
    return as_int(rows[0][0])


@operation(alone=True, repeatable=True)
def excuse_event(lease: PartitionLease, seq: int) -> Steps[None]:
    """Who tried this event lived, and has lost the partition all the same: the event is not what kills readers."""
    yield from execute("excuse_event", grp=lease.group, part=lease.part, seq=seq)


# --- inside --------------------------------------------------------------------------------------


def lost(lease: PartitionLease) -> PartitionLost:
    """What a reader is told who was replaced."""
    return PartitionLost(
        f"this reader no longer holds partition {lease.part} of group {lease.group}",
        "another reader took it over, or the group is replayed",
        "nothing was acknowledged; the event is delivered again",
    )


def _lease(group: str, holder: str, row: Row) -> PartitionLease:
    return PartitionLease(group, as_int(row[0]), holder, as_int(row[2]), as_int(row[1]), bool(row[4]))


def stored(row: Row, deliveries: int = 0) -> Stored:
    event_id, seq, topic, key, data, headers, published_at = row
    return Stored(
        as_int(event_id),
        as_int(seq),
        str(topic),
        text_or_none(key),
        str(data),
        text_or_none(headers),
        whole_or_none(published_at) or 0,
        deliveries,
    )


def _document(asides: Sequence[Aside]) -> str:
    return msgspec.json.encode(asides).decode()
