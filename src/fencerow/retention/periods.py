"""Periods of finished jobs on PostgreSQL: made ahead, closed when they are old, then detached and dropped.

Everything here is safe in many workers at once, may end at any point, and is taken up again by whoever
comes next: what is to be done follows from the period's row and from what became of its table.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.model.state import State
from fencerow.db.run import Steps, as_int, execute, operation

AHEAD = 2  # how many periods exist that have not begun
PATIENCE_S = 2.0  # for a detachment; far below the minute after which another worker takes over


@dataclass(frozen=True, slots=True)
class Period:
    """One period. `stage` is what became of its table: attached, detaching, detached or gone."""

    id: int
    state: State
    starts_us: int
    ends_us: int
    closed: bool
    now_us: int
    stage: str

    @property
    def partition(self) -> str:
        """The name of its table."""
        return partition(self.state, self.id)

    @property
    def is_ahead(self) -> bool:
        """Whether it has not begun."""
        return not self.closed and self.starts_us > self.now_us


def partition(state: State, number: int) -> str:
    """The name of a period's table."""
    return f"finished_{state.value}_{number}"


@operation(alone=True, repeatable=True, writes="")
def periods() -> Steps[list[Period]]:
    """All periods, the oldest first."""
    rows = yield from execute("periods")
    return [
        Period(
            as_int(row[0]),
            State(str(row[1])),
            as_int(row[2]),
            as_int(row[3]),
            bool(row[4]),
            as_int(row[5]),
            str(row[6]),
        )
        for row in rows
    ]


@operation(alone=True, repeatable=True, writes="")
def owns_periods() -> Steps[bool]:
    """Whether this role may make and drop partitions."""
    return bool((yield from execute("owns_periods"))[0][0])


@operation(repeatable=True, writes="schema")
def make_period(state: State, *, length_s: float, lock: int) -> Steps[Period | None]:
    """Make the next period of a state; None when enough are ahead, or when somebody else is making one.

    One at a time, so that locks are short. It never begins at once: see `open_period`.
    """
    if not (yield from execute("try_periods_lock", lock=lock))[0][0]:
        return None
    known = yield from periods().steps()
    if sum(each.is_ahead for each in known if each.state is state) >= AHEAD:
        return None
    number = as_int((yield from execute("open_period", state=state.value, length_s=length_s))[0][0])
    yield from execute("make_partition", partition=partition(state, number), period=number)
    (made,) = [each for each in (yield from periods().steps()) if each.id == number]
    return made


@operation(alone=True, repeatable=True, writes="schema")
def close_periods(state: State, *, age_s: float) -> Steps[int]:
    """Let nothing more into periods that ended longer ago than this; returns how many were closed."""
    return len((yield from execute("close_periods", state=state.value, age_s=age_s)))


@operation(alone=True, repeatable=True, writes="schema")
def forget_lost_periods() -> Steps[list[int]]:
    """Forget open periods whose table was detached or dropped by hand; jobs end row by row until the next begins."""
    return [as_int(row[0]) for row in (yield from execute("forget_lost_periods"))]


@operation(writes="schema")
def take_period() -> Steps[Period | None]:
    """Take a closed period to end it; None when there is none that nobody works on."""
    taken = yield from execute("take_period")
    if not taken:
        return None
    (period,) = [each for each in (yield from periods().steps()) if each.id == taken[0][0]]
    return period


@operation(alone=True, repeatable=True, writes="schema")
def leave_period(number: int) -> Steps[None]:
    """Let the next one take it."""
    yield from execute("leave_period", id=number)


@operation(writes="schema")
def forget_period_notes(table: str, *, limit: int) -> Steps[int]:
    """Remove some of what was noted about the jobs of a closed period; returns how many rows went."""
    events = yield from execute("forget_period_events", partition=table, limit=limit)
    logs = yield from execute("forget_period_logs", partition=table, limit=limit)
    progress = yield from execute("forget_period_progress", partition=table, limit=limit)
    return len(events) + len(logs) + len(progress)


@operation(alone=True, writes="schema", patience_s=PATIENCE_S)
def detach_period(table: str) -> Steps[None]:
    """Take a period's table out of the finished jobs. Waits for readers, and nobody waits for it.

    Outside a transaction, as PostgreSQL demands. Cut off, it is left `detaching`: `finalize_period`.
    """
    yield from execute("detach_period", partition=table)


@operation(alone=True, writes="schema", patience_s=PATIENCE_S)
def finalize_period(table: str) -> Steps[None]:
    """Finish a detachment that was cut off. Waits for all older transactions, and nobody waits for it."""
    yield from execute("finalize_period", partition=table)


@operation(repeatable=True, writes="schema")
def drop_period(table: str, number: int) -> Steps[None]:
    """Drop the table of a period that is detached, and forget the period."""
    yield from execute("drop_period", partition=table)
    yield from execute("forget_period", id=number)
