"""Ending what no code knows. Safe in every worker at once."""

from __future__ import annotations

from fencerow.core.model.lane import ANYBODYS
from fencerow.core.store.attempts import MovedJob, archive
from fencerow.db.run import Steps, as_int, execute, first_column, operation


@operation(alone=True, repeatable=True, writes="")
def lanes_since(queue: str, *, age_s: float) -> Steps[list[tuple[int, str]]]:
    """The lanes of a queue, by priority and name, whose first job has been due for `age_s`."""
    rows = yield from execute("lanes_since", queue=queue, age_s=age_s)
    return [(as_int(row[0]), str(row[1])) for row in rows]


@operation()
def disown(
    queue: str, priority: int, lane: str = ANYBODYS, *, age_s: float, look: int, actor: str | None
) -> Steps[list[MovedJob]]:
    """Fail the queued jobs of one lane that were due for `age_s` while no living worker knew their name.

    Looks at the `look` oldest jobs of the lane.
    """
    rows = yield from execute("disown", queue=queue, priority=priority, lane=lane, age_s=age_s, look=look)
    ids = first_column(rows)
    if ids:
        yield from execute("note_disowned", ids=ids, actor=actor)
    return (yield from archive(ids))
