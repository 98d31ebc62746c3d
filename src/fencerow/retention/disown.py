"""Ending what no code knows. Safe in every worker at once."""

from __future__ import annotations

from fencerow.core.db.run import Steps, execute, first_column, operation
from fencerow.core.store.attempts import Moved, archive


@operation()
def disown(queue: str, priority: int, *, age_s: float, look: int, actor: str | None) -> Steps[list[Moved]]:
    """Fail the queued jobs of one lane that were due for `age_s` while no living worker knew their name.

    Looks at the `look` oldest jobs of the lane, and as many suspects of the queue.
    """
    ids = first_column((yield from execute("disown", queue=queue, priority=priority, age_s=age_s, look=look)))
    if ids:
        yield from execute("note_disowned", ids=ids, actor=actor)
    return (yield from archive(ids))
