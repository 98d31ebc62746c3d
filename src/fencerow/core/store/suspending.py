"""Jobs that wait for something of a wing: suspended under the fence of their attempt, and woken.

The core does not know what they wait for. A wing notes it before the handler raises `Suspend`, and says at the point
`whose wait is over` when it has come; see `core/store/points.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fencerow.core.model.state import State
from fencerow.core.store.attempts import Requeued, requeued_rows
from fencerow.db.run import Steps, as_int, execute, first_column, operation


class SuspendedAttempt(msgspec.Struct, frozen=True):
    """An attempt that ends while its job goes on waiting: `detail` is JSON text for the timeline."""

    id: str
    attempt: int
    detail: str | None = None


class Suspending(NamedTuple):
    """The jobs that were suspended; those of them that were woken at once, for what they waited for was there; and
    whether turns are free now."""

    ids: list[str]
    woken: list[Requeued]
    had_turns: bool


class Waiter(NamedTuple):
    """A live job under its lock."""

    id: str
    state: State
    attempt: int
    is_suspended: bool


@operation()
def suspend(outcomes: Sequence[SuspendedAttempt], *, holder: str) -> Steps[Suspending]:
    """Let the jobs wait, but for those of which a cancel was asked: `stop` those.

    What they wait for may have come meanwhile: a later statement looks, under the lock of their rows.
    """
    rows = yield from execute("suspend", outcomes=msgspec.json.encode(outcomes).decode(), holder=holder)
    if not rows:
        return Suspending([], [], False)
    ids = first_column(rows)
    woken = yield from wake_locked(ids, actor=holder, anyway=False)
    return Suspending(ids, woken, any(bool(row[1]) for row in rows) or any(job.waits for job in woken))


def suspend_new(ids: Sequence[str]) -> Steps[list[str]]:
    """Let jobs that this very transaction has inserted wait from their submit on, until something wakes them; returns
    their ids. Part of other operations, after the statements of a submit."""
    return first_column((yield from execute("suspend_new", ids=list(ids))))


@operation(repeatable=True)
def wake(ids: Sequence[str], *, actor: str | None) -> Steps[list[Requeued]]:
    """Queue those of these jobs that are suspended, whatever they wait for; returns them. Waits for locked rows."""
    yield from lock_waiters(ids)
    return (yield from wake_locked(ids, actor=actor))


@operation(repeatable=True)
def wake_whose_wait_is_over(ids: Sequence[str], *, actor: str | None) -> Steps[list[Requeued]]:
    """Queue those of these jobs that are suspended, and of which a wing says that the wait is over.

    Locked rows are left. So whoever calls it looks again: what has come is not forgotten by that.
    """
    free = yield from lock_waiters(ids, skip_locked=True)
    return (yield from wake_locked([each.id for each in free], actor=actor, anyway=False))


def lock_waiters(ids: Sequence[str], *, skip_locked: bool = False) -> Steps[list[Waiter]]:
    """Lock live jobs before what they wait for is written. Part of other operations; those that ended are not told.

    The first statement of whoever wakes: then what it waits for is written, and then `wake_locked` follows.
    """
    if skip_locked:
        rows = yield from execute("lock_free_waiters", ids=list(ids))
    else:
        rows = yield from execute("lock_waiters", ids=list(ids))
    return [Waiter(str(row[0]), State(str(row[1])), as_int(row[2]), bool(row[3])) for row in rows]


def wake_locked(ids: Sequence[str], *, actor: str | None, anyway: bool = True) -> Steps[list[Requeued]]:
    """Queue the suspended ones of jobs that this transaction has locked: all, or those whose wait is over. Part of
    other operations; whoever calls them announces the jobs that are queued, as after a requeue."""
    if not ids:
        return []
    return requeued_rows((yield from execute("wake", ids=list(ids), actor=actor, anyway=int(anyway))))
