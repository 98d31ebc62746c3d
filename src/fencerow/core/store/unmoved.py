"""Jobs whose end the database refuses to move: they fail where they lie, and are moved once it takes them."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.store.attempts import Failure, MovedJob, archive, moved_rows, text_of
from fencerow.db.run import Steps, execute, first_column, operation


@operation(alone=True)
def fail_in_place(outcomes: Sequence[Failure], *, holder: str) -> Steps[list[MovedJob]]:
    """End the jobs as failed where they are, for the database refuses to move them; see `move_late`."""
    return moved_rows((yield from execute("fail_in_place", outcomes=text_of(outcomes), holder=holder)))


@operation(alone=True, repeatable=True, writes="")
def unmoved(*, limit: int) -> Steps[list[str]]:
    """Jobs that have ended and lie among the live ones still, the oldest first, at most `limit`."""
    return first_column((yield from execute("unmoved", limit=limit)))


@operation()
def move_late(job_id: str) -> Steps[list[MovedJob]]:
    """Move a job that failed in its place to the finished ones, if nobody has. Refused again, it stays where it is."""
    return (yield from archive([job_id]))
