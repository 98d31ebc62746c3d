"""Rows that a trigger of the user's left out: the database skips one, and says nothing of that to who inserts it."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.db.errors import RowRefused
from fencerow.db.run import Rows

IDS_SHOWN = 3


def look_text(prefix: str) -> str:
    """Which of the jobs `:ids` are not there, on SQLite."""
    # A checked identifier.
    return (
        "SELECT wanted.value FROM json_each(:ids) AS wanted"  # noqa: S608
        f" WHERE NOT EXISTS (SELECT 1 FROM {prefix}jobs AS job WHERE job.id = wanted.value)"
    )


def refuse_left_out(missing: Rows) -> None:
    """Raise if there are any; each row begins with the id of a job.

    Raises:
        RowRefused: of a job that was to be stored there is no row.
    """
    if missing:
        raise left_out([str(row[0]) for row in missing])


def left_out(ids: Sequence[str]) -> RowRefused:
    """What who submits these jobs is told."""
    more = f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else ""
    return _refused(f"the row of {', '.join(ids[:IDS_SHOWN])}{more}")


def refuse_fewer(stored: int, ids: Sequence[str]) -> None:
    """Raise where fewer rows were stored than these: nobody says which are missing.

    Raises:
        RowRefused: some are.
    """
    if stored != len(ids):
        raise _refused(f"{len(ids) - stored} of {len(ids)} rows")


def _refused(what: str) -> RowRefused:
    return RowRefused(
        f"a trigger of this database left {what} out",
        "one that returns NULL, or says RAISE(IGNORE) on SQLite, skips a row, and whoever inserts it is told nothing",
        "correct the job, or the trigger; an error that it raises says for what reason it refuses",
    )
