"""Shares of queues, and their weights.

A share is whoever has jobs under its name. Its jobs are queued in a lane of its own, which takes turns with the others.
"""

from __future__ import annotations

import msgspec

from fencerow.core.model.job import At, AtOrNone
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation, text_or_none


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
