"""Affinity: claims by workers with labels, and jobs that have waited long enough for one.

A job that names a label is `waiting`, at no gate and in no lane, so the claims of others never meet it. Who carries
the label claims it from there; once its wait is over it is queued for anybody. One of the two wins, by the state of
the row.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.db.run import Statement, Steps, as_int, as_int_or_none, execute, operation
from fencerow.core.model.due import OWN, Due
from fencerow.core.model.job import Claimed, Lane
from fencerow.core.store.attempts import Mark, Requeued, decoded, requeued_rows

FALLBACKS_MAX = 500  # that one transaction queues


@operation(alone=True, prepared=True)
def claim_labelled(
    queue: str,
    marks: Sequence[Mark],
    labels: Sequence[str],
    *,
    holder: str,
    names: Sequence[str],
    limit: int,
    margin_s: float,
    due: Due = OWN,
    bounded: bool = False,
    beside: bool = True,
) -> Steps[list[Claimed]]:
    """`claim` for a worker with labels: of each lane first the jobs that wait for these, in their order, then the rest.

    `beside` false: none of the others. The marks count for the others only. Locked rows are skipped. A job of another
    label, or one that somebody has taken or queued for all meanwhile, is left.
    """
    lanes = [(mark.priority, mark.run_at_us, mark.id, beside) for mark in marks]
    rows = yield Statement(
        "claim_labelled",
        {
            "queue": queue,
            "lanes": msgspec.json.encode(lanes).decode(),
            "labels": list(labels),
            "holder": holder,
            "names": list(names),
            "limit": limit,
            "margin_s": margin_s,
            "due_us": due.until_us,
            "since_us": due.since_us,
            "bounded": int(bounded),
        },
    )
    claimed = decoded(rows)
    assert len(claimed) <= limit, f"claimed {len(claimed)} jobs, asked for {limit}"
    return claimed


@operation(alone=True, repeatable=True, writes="", prepared=True)
def labelled_lanes(queue: str, labels: Sequence[str]) -> Steps[tuple[list[Lane], int]]:
    """The lanes of a queue in which jobs wait for these labels, and the database's now in microseconds (0: none)."""
    rows = yield Statement("labelled_lanes", {"queue": queue, "labels": list(labels)})
    found = [Lane(as_int_or_none(row[0]), as_int(row[1]), bool(row[3]), labelled=True) for row in rows]
    return found, max((as_int(row[2]) for row in rows), default=0)


@operation(alone=True, repeatable=True, writes="")
def any_due_labelled(queues: Sequence[str], names: Sequence[str], labels: Sequence[str]) -> Steps[bool]:
    """Whether a job of these names is due there that waits for one of these labels."""
    rows = yield from execute("any_due_labelled", queues=list(queues), names=list(names), labels=list(labels))
    return bool(rows[0][0])


@operation(repeatable=True)
def fall_back(*, actor: str | None) -> Steps[list[Requeued]]:
    """Queue jobs whose wait for a label is over, at most `FALLBACKS_MAX`: anybody of their queue may take them now.

    Safe in every worker at once, and may be repeated. Locked jobs are left for the next look.
    """
    return requeued_rows((yield from execute("fall_back", actor=actor, limit=FALLBACKS_MAX)))
