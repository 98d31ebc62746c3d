"""Removing finished jobs by age and by number, spent ids, and keys past their lifetime, in bounded batches.

Each of these returns how many it removed; a number equal to `limit` says that there may be more. Beside them the rows
of workers that have ended, and whether a wing has rows at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.model.state import State
from fencerow.core.store.moves import forget_notes
from fencerow.db.run import Param, Steps, execute, first_column, operation


@operation()
def purge_by_age(state: State, *, age_s: float, limit: int, everywhere: bool = True) -> Steps[int]:
    """Remove jobs of one final state that ended longer ago than this and have no retention of their own.

    Without `everywhere` what lies in a period is left to the end of the period.
    """
    return (
        yield from _purged("purge_by_age", state=state.value, age_s=age_s, limit=limit, everywhere=everywhere)
    )


@operation()
def purge_by_own_age(*, limit: int) -> Steps[int]:
    """Remove jobs that are past the retention they were submitted with."""
    return (yield from _purged("purge_by_own_age", limit=limit))


@operation()
def purge_by_count(state: State, *, keep: int, limit: int) -> Steps[int]:
    """Remove the oldest jobs of one final state beyond the number to keep, which may be none."""
    if keep == 0:  # there is no oldest one to keep that the statement could compare with
        return (yield from purge_by_age(state, age_s=0.0, limit=limit).steps())
    return (yield from _purged("purge_by_count", state=state.value, keep=keep, limit=limit))


@operation()
def purge_spent(*, age_s: float, limit: int) -> Steps[int]:
    """Forget ephemeral jobs that succeeded longer ago than this: a submit that is repeated later runs again."""
    return (yield from _purged("purge_spent", age_s=age_s, limit=limit))


@operation(alone=True)
def purge_repeated(*, age_s: float, limit: int) -> Steps[int]:
    """Forget ids that were submitted again longer ago than this, see `refuse_repeated`."""
    return len((yield from execute("purge_repeated", age_s=age_s, limit=limit)))


@operation(alone=True)
def purge_keys(*, limit: int) -> Steps[int]:
    """Forget idempotency keys past their lifetime, which counts from the end of their job."""
    return len((yield from execute("purge_keys", limit=limit)))


@operation(alone=True, repeatable=True, writes="", reads="both")
def spent_workers(*, age_s: float) -> Steps[list[str]]:
    """Workers that ended longer ago than this and hold nothing."""
    return first_column((yield from execute("spent_workers", age_s=age_s)))


@operation(alone=True, repeatable=True, writes="workers")
def forget_workers(ids: Sequence[str], *, age_s: float) -> Steps[list[str]]:
    """Drop the rows of these workers, if they ended longer ago than this."""
    return first_column((yield from execute("forget_workers", ids=list(ids), age_s=age_s)))


@operation(alone=True, repeatable=True, writes="")
def is_used(statement: str) -> Steps[bool]:
    """Whether a wing has anything in its tables: the named query that says so has a row then."""
    return bool((yield from execute(statement)))


def _purged(name: str, **params: Param) -> Steps[int]:
    return len((yield from forget_notes(first_column((yield from execute(name, params))))))
