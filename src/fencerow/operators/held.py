"""What workers hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fencerow.core.model.job import At
from fencerow.db.run import Steps, as_int, execute, operation


class HeldJob(msgspec.Struct, frozen=True):
    """A job that a worker holds now: it runs, or waits there for a slot."""

    id: str
    name: str
    queue: str
    attempt: int
    priority: int
    claimed_at_us: int
    cancel_requested: bool
    now_us: int

    claimed_at = At("claimed_at_us")
    now = At("now_us")


@operation(alone=True, repeatable=True, writes="")
def held_jobs(holder: str, *, limit: int = 100) -> Steps[list[HeldJob]]:
    """The jobs that a worker holds, the oldest claim first, for people."""
    rows = yield from execute("held_jobs", holder=holder, limit=limit)
    return [
        HeldJob(
            str(row[0]),
            str(row[1]),
            str(row[2]),
            as_int(row[3]),
            as_int(row[4]),
            as_int(row[5]),
            bool(row[6]),
            as_int(row[7]),
        )
        for row in rows
    ]


class HeldCount(NamedTuple):
    """How many jobs a worker holds, and how many of them are suspects: a worker died while they may have run."""

    jobs: int = 0
    suspects: int = 0


NONE_HELD = HeldCount()


@operation(alone=True, repeatable=True, writes="")
def held_counts(holders: Sequence[str]) -> Steps[dict[str, HeldCount]]:
    """How many jobs each of these workers holds; one that holds none is not in the answer."""
    rows = yield from execute("held_counts", holders=list(holders))
    return {str(row[0]): HeldCount(as_int(row[1]), as_int(row[2])) for row in rows}
