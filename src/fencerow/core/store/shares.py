"""Claims from a lane that is divided into shares: whose jobs are there, so many of each; and the weights of shares.

A share is whoever has jobs under its name. The jobs are queued like all others; only which of them a claim takes is
decided otherwise, by the worker. Jobs without a share are one more, while one of them is the first of the lane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from fencerow.core.model.job import Claimed
from fencerow.core.model.turns import NOBODYS, Ring, RingMember
from fencerow.core.store.attempts import Mark, decoded


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


@operation(alone=True, repeatable=True, writes="", prepared=True)
def ring(
    queue: str, mark: Mark, after: str, until: str, *, names: Sequence[str], limit: int, due: Due = OWN
) -> Steps[Ring]:
    """Of the next `limit` shares behind `after`, round to `until`, those that have due jobs in the lane of this mark.

    `names` and the mark are only for the jobs without a share: they are in it while the first job that could be claimed
    from the mark on is one of them.
    """
    rows = yield Statement(
        "ring",
        {
            "queue": queue,
            "priority": mark.priority,
            "mark_us": mark.run_at_us,
            "mark_id": mark.id,
            "after": after,
            "until": until,
            "limit": limit,
            "names": list(names),
            "due_us": due.until_us,
            "since_us": due.since_us,
        },
    )
    return _ring(rows, after, until, limit)


def _ring(rows: Rows, after: str, until: str, limit: int) -> Ring:
    """The empty name comes where the names begin again."""
    nobodys = [RingMember(NOBODYS, as_int(row[2])) for row in rows if as_int(row[0]) < 0]
    shares = [row for row in rows if as_int(row[0]) > 0]
    last = str(shares[-1][1]) if shares else after
    whole = len(shares) < limit or last == until
    before = [RingMember(str(row[1]), as_int(row[2])) for row in shares if row[4] and not row[3]]
    behind = [RingMember(str(row[1]), as_int(row[2])) for row in shares if row[4] and row[3]]
    begins = bool(behind) or whole
    return Ring((*before, *(nobodys if begins else ()), *behind), whole, last)


@operation(alone=True, prepared=True)
def claim_in_turn(
    queue: str,
    mark: Mark,
    counts: Mapping[str, int],
    *,
    holder: str,
    names: Sequence[str],
    margin_s: float,
    due: Due = OWN,
    bounded: bool = False,
) -> Steps[list[Claimed]]:
    """Take so many due jobs of each of these shares from the lane of this mark; otherwise as `claim`.

    They come in the order of the lane. Of the jobs without a share it looks no further than it wants jobs in all.
    """
    limit = sum(counts.values())
    turns = [(share, count) for share, count in counts.items() if share != NOBODYS]
    rows = yield Statement(
        "claim_in_turn",
        {
            "queue": queue,
            "priority": mark.priority,
            "mark_us": mark.run_at_us,
            "mark_id": mark.id,
            "turns": msgspec.json.encode(turns).decode(),
            "nobodys": counts.get(NOBODYS, 0),
            "reach": limit,
            "holder": holder,
            "names": list(names),
            "margin_s": margin_s,
            "due_us": due.until_us,
            "since_us": due.since_us,
            "bounded": int(bounded),
        },
    )
    claimed = decoded(rows)
    assert len(claimed) <= limit, f"claimed {len(claimed)} jobs, asked for {limit}"
    return claimed


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
