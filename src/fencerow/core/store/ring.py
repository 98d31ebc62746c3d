"""Lanes in turn: which of them have due jobs in a priority of a queue.

How many jobs of each a claim takes is decided by the worker. Jobs in no such lane are one more.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.model.turns import Ring, RingMember
from fencerow.core.store.claims import LANES_IN_TURN_MAX
from fencerow.db.due import OWN, Due
from fencerow.db.run import Rows, Statement, Steps, as_int, operation


@operation(alone=True, repeatable=True, writes="", prepared=True)
def ring(
    queue: str,
    priority: int,
    after: str,
    until: str,
    *,
    names: Sequence[str],
    limit: int,
    from_us: int = 0,
    due: Due = OWN,
) -> Steps[Ring]:
    """The lanes in turn behind `after`, round to `until`, that hold jobs of these names; at most `limit` of them have
    due ones. Jobs that are due before `from_us`, or have expired, do not count; of a paused queue there are none."""
    rows = yield Statement(
        "ring",
        {
            "queue": queue,
            "priority": priority,
            "after": after,
            "until": until,
            "names": list(names),
            "from_us": from_us,
            "limit": limit,
            "steps": LANES_IN_TURN_MAX,
            "due_us": due.until_us,
        },
    )
    return _ring(rows, after, until, limit)


def _ring(rows: Rows, after: str, until: str, limit: int) -> Ring:
    weight, seen = as_int(rows[0][2]), rows[1:]
    due = [row for row in seen if row[5]]
    last = str(seen[-1][1]) if seen else after
    later = [as_int(row[4]) for row in seen if not row[5]]
    return Ring(
        members=tuple(RingMember(str(row[1]), as_int(row[2]), as_int(row[4]) - 1) for row in due),
        whole=(len(due) < limit and len(seen) < LANES_IN_TURN_MAX) or last == until,
        last=last,
        begins=sum(not row[3] for row in due) if any(row[3] for row in seen) else None,
        weight=weight,
        later_us=min(later, default=None),
    )
