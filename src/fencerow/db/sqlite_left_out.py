"""Rows that a trigger left out: RAISE(IGNORE) skips one, and SQLite says nothing of that to who inserts it."""

from __future__ import annotations

from fencerow.db.errors import RowRefused
from fencerow.db.run import Rows

IDS_SHOWN = 3


def look_text(prefix: str) -> str:
    """Which of the jobs `:ids` are not there."""
    # A checked identifier.
    return (
        "SELECT wanted.value FROM json_each(:ids) AS wanted"  # noqa: S608
        f" WHERE NOT EXISTS (SELECT 1 FROM {prefix}jobs AS job WHERE job.id = wanted.value)"
    )


def refuse_left_out(missing: Rows) -> None:
    """Raise if there are any. They were inserted in this transaction, so nobody else can have removed them.

    Raises:
        RowRefused: of a job that was to be stored there is no row.
    """
    if not missing:
        return
    shown = ", ".join(str(job_id) for (job_id,) in missing[:IDS_SHOWN])
    more = f" and {len(missing) - IDS_SHOWN} more" if len(missing) > IDS_SHOWN else ""
    raise RowRefused(
        f"a trigger of this file left the row of {shown}{more} out",
        "RAISE(IGNORE) skips a row, and whoever inserts it is told nothing",
        "correct the job, or the trigger; RAISE(ABORT, 'why') says for what reason it refuses",
    )
