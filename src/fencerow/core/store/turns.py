"""Turns at the gates: who waits for one, who gets the next.

Of a key no more jobs run at once than it has slots. A job that needs a turn waits at a gate, in no lane. Its turn is
not stored: the jobs of a key that are queued or running have its turns. `hand_over` gives what is left to those who
wait, the highest priority first, then the earliest due, then the smallest id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from fencerow.core.db.run import (
    Rows,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    first_column,
    operation,
)
from fencerow.core.model.job import NewJob
from fencerow.core.store.attempts import Requeued, requeued_rows

GATES_MAX = 500  # that one hand-over looks at
ROUNDS_MAX = 5  # of making a gate's row and locking it; each loses only to somebody who removed it


class HandedOver(msgspec.Struct, frozen=True):
    """Who got a turn; and whether there may be more to do at once."""

    queued: list[Requeued]
    more: bool


class Room(msgspec.Struct, frozen=True):
    """A gate at which jobs wait: how many turns are taken, and how many there may be.

    `least` is what the least of the jobs that have a turn allows, None where nobody has one; `head` is what the first
    that waits allows.
    """

    gate: str
    taken: int
    least: int | None
    head: int

    @property
    def slots(self) -> int:
        """How many may have a turn at once, as far as those allow who have one and who comes first."""
        return self.head if self.least is None else min(self.least, self.head)


@operation(alone=True, repeatable=True, writes="")
def turns_wanted() -> Steps[tuple[bool, int | None]]:
    """Whether a gate is to be looked at, and in how many microseconds the next job at one is due (None: no job)."""
    ((arrived, due_us),) = yield from execute("turns_wanted")
    return bool(arrived), as_int_or_none(due_us)


@operation(alone=True, repeatable=True, writes="")
def gates_after(after: str = "") -> Steps[list[str]]:
    """The next gates where jobs wait, by their names: what a sweep looks at, so that no lost arrival matters."""
    return first_column((yield from execute("gates_after", after=after, limit=GATES_MAX)))


@operation(repeatable=True)
def hand_over(gates: Iterable[str] = ()) -> Steps[HandedOver]:
    """Give free turns to those who wait for them, at gates where somebody came or left, and at these `gates`.

    Locks the rows of the gates, in sorted order: two that meet at a gate take turns themselves. Locked jobs are
    passed over. May be repeated, by anybody at any time: what is given is what is free.
    """
    rows = yield from execute("take_arrivals", limit=GATES_MAX)
    names = sorted({str(row[0]) for row in rows}.union(gates))
    if not names:
        return HandedOver([], more=False)
    locked = yield from _locked(names)
    rooms = [_room(row) for row in (yield from execute("look_at_gates", gates=locked))]
    chosen = yield from _chosen(rooms)
    given = requeued_rows((yield from execute("give_turns", ids=chosen))) if chosen else []
    yield from execute("note_gates", gates=locked)
    return HandedOver(given, more=len(rows) >= GATES_MAX)


def _locked(names: list[str]) -> Steps[list[str]]:
    """Lock the gates, after making the rows of those that have none. A row may be removed between the two."""
    locked: list[str] = []
    for _ in range(ROUNDS_MAX):
        yield from execute("know_gates", gates=names)
        locked = first_column((yield from execute("lock_gates", gates=names)))
        if len(locked) == len(names):
            break
    return locked


def _room(row: tuple[object, ...]) -> Room:
    return Room(str(row[0]), as_int(row[1]), as_int_or_none(row[2]), as_int(row[3]))


def _chosen(rooms: Sequence[Room]) -> Steps[list[str]]:
    """The jobs whose turn it is, locked."""
    wanted: defaultdict[int, list[str]] = defaultdict(list)
    for room in rooms:
        if room.slots > room.taken:
            wanted[min(room.slots - room.taken, GATES_MAX)].append(room.gate)
    by_gate = {room.gate: room for room in rooms}
    chosen: list[str] = []
    for count, gates in sorted(wanted.items()):
        rows = yield from execute("find_turns", gates=gates, wanted=count)
        chosen += _fitting(rows, by_gate)
    return chosen


def _fitting(rows: Rows, rooms: Mapping[str, Room]) -> Iterator[str]:
    """Of those who wait at each gate, in their order: who may run beside those who have a turn, and beside each other.

    Nobody goes past one that does not fit.
    """
    taken = {name: room.taken for name, room in rooms.items()}
    least = {name: room.least for name, room in rooms.items()}
    for gate, job_id, slots in rows:
        name = str(gate)
        before = least[name]
        allowed = as_int(slots) if before is None else min(before, as_int(slots))
        least[name] = allowed
        if taken[name] < allowed:
            taken[name] += 1
            yield str(job_id)


def arriving(jobs: Iterable[NewJob]) -> Steps[None]:
    """Say that new jobs come to their gates. Before their insert, in its transaction; part of other operations."""
    come = {
        (job.gate, job.template.priority, job.template.run_at_us, job.template.delay_s): None
        for job in jobs
        if job.gate is not None
    }
    if come:
        named = [
            {"gate": gate, "priority": priority, "run_at_us": run_at_us, "delay_s": delay_s}
            for gate, priority, run_at_us, delay_s in come
        ]
        yield from execute("arrive", come=msgspec.json.encode(named).decode())
