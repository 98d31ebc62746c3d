"""Removing finished jobs by age and by number, and keys past their lifetime, in bounded batches.

Each returns how many it removed; a number equal to `limit` says that there may be more.
"""

from __future__ import annotations

from fencerow.db.statement import Steps, execute, operation
from fencerow.model.state import State


@operation(alone=True)
def purge_by_age(state: State, *, age_s: float, limit: int) -> Steps[int]:
    """Remove jobs of one final state that ended longer ago than this and have no retention of their own."""
    return len((yield from execute("purge_by_age", state=state.value, age_s=age_s, limit=limit)))


@operation(alone=True)
def purge_by_own_age(*, limit: int) -> Steps[int]:
    """Remove jobs that are past the retention they were submitted with."""
    return len((yield from execute("purge_by_own_age", limit=limit)))


@operation(alone=True)
def purge_by_count(state: State, *, keep: int, limit: int) -> Steps[int]:
    """Remove the oldest jobs of one final state beyond the number to keep, which may be none."""
    if keep == 0:  # there is no oldest one to keep that the statement could compare with
        return (yield from purge_by_age(state, age_s=0.0, limit=limit).steps())
    return len((yield from execute("purge_by_count", state=state.value, keep=keep, limit=limit)))


@operation(alone=True)
def purge_keys(*, limit: int) -> Steps[int]:
    """Forget idempotency keys past their lifetime, which counts from the end of their job."""
    return len((yield from execute("purge_keys", limit=limit)))
