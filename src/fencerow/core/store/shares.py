"""Shares: which of them have due jobs in a priority of a queue, and their weights.

A share is whoever has jobs under its name. Its jobs are queued in a lane of its own; how many of them a claim takes is
decided by the worker. Jobs without a share are one more.
"""

from __future__ import annotations

import msgspec

from fencerow.core.db.run import (
    Rows,
    Statement,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    operation,
    text_or_none,
)
from fencerow.core.model.due import OWN, Due
from fencerow.core.model.job import At, AtOrNone
from fencerow.core.model.turns import Ring, RingMember
from fencerow.core.store.attempts import SHARES_MAX


class ShareRecord(msgspec.Struct, frozen=True):
    """A share of a queue as it stands: its weight, and how many of its jobs are queued and running.

    `first_us`: when the first of those that are queued was due; `set_at_us` and `set_by` are of the weight, if somebody
    said one. Instants are microseconds since 1970 by the database's clock.
    """

    queue: str
    share: str
    weight: int
    queued: int
    running: int
    first_us: int | None
    set_at_us: int | None
    set_by: str | None
    now_us: int

    first = AtOrNone("first_us")
    set_at = AtOrNone("set_at_us")
    now = At("now_us")


@operation(alone=True, repeatable=True, writes="", prepared=True)
def ring(queue: str, priority: int, after: str, until: str, *, limit: int, due: Due = OWN) -> Steps[Ring]:
    """The lanes of shares behind `after`, round to `until`, of which `limit` have due jobs at most."""
    rows = yield Statement(
        "ring",
        {
            "queue": queue,
            "priority": priority,
            "after": after,
            "until": until,
            "limit": limit,
            "steps": SHARES_MAX,
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
        whole=(len(due) < limit and len(seen) < SHARES_MAX) or last == until,
        last=last,
        begins=sum(not row[3] for row in due) if any(row[3] for row in seen) else None,
        weight=weight,
        later_us=min(later, default=None),
    )


@operation(repeatable=True)
def weigh_share(queue: str, share: str, weight: int, *, actor: str | None) -> Steps[bool]:
    """Let a share start so many jobs one after another, from its next turn on; false if it could already."""
    return bool((yield from execute("weigh_share", queue=queue, share=share, weight=weight, actor=actor)))


@operation(repeatable=True)
def forget_weight(queue: str, share: str) -> Steps[bool]:
    """Let a share start one job at a time again; false if nobody had said anything else."""
    return bool((yield from execute("forget_weight", queue=queue, share=share)))


@operation(alone=True, repeatable=True, writes="")
def read_shares(queue: str | None = None) -> Steps[list[ShareRecord]]:
    """The shares of a queue, or of all, that have live jobs or a weight of their own; by queue and name."""
    rows = yield from execute("read_shares", queue=queue)
    return [
        ShareRecord(
            str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3]), as_int(row[4]), as_int_or_none(row[5]),
            as_int_or_none(row[6]), text_or_none(row[7]), as_int(row[8]),
        )
        for row in rows
    ]  # fmt: skip
