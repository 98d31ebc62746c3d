"""Looks at gates that give no turn: whether there is something to give, and where; and gates that nobody needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fencerow.db.due import OWN, Due
from fencerow.db.removal import Looked
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, first_column, operation
from fencerow.turns.affinity import next_fall_back

SWEPT_MAX = 2000  # gates that a part of a sweep looks at


class TurnsWanted(NamedTuple):
    """What there is to do for those who wait. `arrived`: a gate is to be looked at. `due_us`: until the next is, in
    microseconds; None: none will be by itself."""

    arrived: bool
    due_us: int | None

    @property
    def at_once(self) -> bool:
        """Whether a gate is to be looked at now."""
        return self.arrived or (self.due_us is not None and self.due_us <= 0)


@operation(alone=True, repeatable=True, writes="", prepared=True)
def turns_wanted(after: int = 0) -> Steps[TurnsWanted]:
    """Whether a gate is to be looked at, or when one will be. `after`: of arrivals only those behind this one count."""
    ((arrived, due_us),) = yield from execute("turns_wanted", after=after)
    return TurnsWanted(bool(arrived), as_int_or_none(due_us))


@operation(repeatable=True, writes="")
def any_soon() -> Steps[bool]:
    """Whether somebody may get a turn at once, or the wait of one for a label is over.

    Also the turn of a job in a paused queue, which a sweep takes back: of the first gates, where many wait at more.
    """
    if (yield from turns_wanted().steps()).at_once:
        return True
    over_us = yield from next_fall_back().steps()
    if over_us is not None and over_us <= 0:
        return True
    gates = yield from gates_after().steps()
    return bool(
        gates and (yield from execute("find_unused_turns", gates=gates, stopped=[], unclaimed_s=None))
    )


@operation(alone=True, repeatable=True, writes="")
def gates_after(after: str = "") -> Steps[list[str]]:
    """The next gates where jobs wait, by their names: what a sweep looks at, so that no lost arrival matters."""
    return first_column((yield from execute("gates_after", after=after, limit=SWEPT_MAX)))


@operation(alone=True, repeatable=True, writes="")
def gates_left(gates: Sequence[str], *, due: Due = OWN) -> Steps[list[str]]:
    """Those of these gates where somebody may go who has got no turn, as far as a look without locks tells."""
    return sorted(
        first_column(
            (yield from execute("gates_left", gates=list(gates), due_us=due.until_us, since_us=due.since_us))
        )
    )


@operation(repeatable=True)
def tell_gates(queue: str, after: str = "") -> Steps[str]:
    """After a queue was resumed, say at the next gates where its jobs wait that they are to be looked at.

    Returns after which gate to go on; empty behind the last. In a transaction that begins after the queue was resumed:
    so it sees all whose arrivals were used up while it was paused, and whoever comes later has an arrival of his own.
    """
    gates = first_column((yield from execute("gates_after", after=after, limit=SWEPT_MAX)))
    if gates:
        yield from execute("arrive_of_queue", gates=gates, queue=queue)
    return gates[-1] if len(gates) == SWEPT_MAX else ""


@operation(repeatable=True)
def forget_gates(after: str, *, limit: int) -> Steps[Looked[str]]:
    """Remove the rows of gates that nobody needs, among so many after this name.

    It goes on after "" when that was the last. A gate is needed while somebody waits there, has a turn of its key, or
    is to be told when time makes room. Whoever comes later has left an arrival, and the look that follows makes the row
    again. The gates are locked first and judged in a later statement: who sends a job to one holds its lock. Locked
    ones are left.
    """
    ((looked, last),) = yield from execute("gate_rows_after", after=after, limit=limit)
    yield from execute("forget_passed_queues")
    if not looked:
        return Looked("")
    idle = first_column((yield from execute("lock_idle_gates", after=after, last=str(last))))
    gone = len((yield from execute("forget_gates", gates=idle))) if idle else 0
    return Looked(str(last) if looked == limit else "", as_int(looked), gone)
