"""Affinity: jobs that have waited long enough for a worker with their label.

A job that names a label is queued in the lane of that label. Who carries the label claims from there; once its wait is
over it stands in the lane of anybody. One of the two wins, by the row.
"""

from __future__ import annotations

from fencerow.core.store.attempts import Requeued, requeued_rows
from fencerow.db.due import OWN, Due
from fencerow.db.run import Steps, as_int, execute, operation

FALLBACKS_MAX = 500  # that one transaction moves


@operation(alone=True, repeatable=True, writes="")
def next_fall_back() -> Steps[int | None]:
    """In how many microseconds the next wait for a label is over; 0 or less: one is. None: nobody waits for a label.

    By the database's clock alone, though it may have gone back.
    """
    rows = yield from execute("next_fall_back")
    return as_int(rows[0][0]) if rows else None


@operation(repeatable=True)
def fall_back(*, actor: str | None, due: Due = OWN) -> Steps[list[Requeued]]:
    """Let anybody of their queue take jobs whose wait for a label is over, at most `FALLBACKS_MAX`.

    `due`: by which time, where the database's clock went back; what lies ahead of now is due now. Safe in every worker
    at once, and may be repeated. Locked jobs are left for the next look.
    """
    rows = yield from execute(
        "fall_back", actor=actor, limit=FALLBACKS_MAX, due_us=due.until_us, since_us=due.since_us
    )
    return requeued_rows(rows)
