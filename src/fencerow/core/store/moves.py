"""Moves that people and clocks make: cancel, expire, revive, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import msgspec

from fencerow.core.errors import (
    FencerowError,
    IllegalMove,
    JobGone,
    JobNotFound,
    KeyConflict,
    RevivedTooSoon,
)
from fencerow.core.model.job import Fence
from fencerow.core.model.state import FINAL, State
from fencerow.core.store.attempts import MovedJob, Requeued, archive, read_fences, requeued_rows
from fencerow.db.run import Row, Steps, execute, first_column, operation, text_or_none

T = TypeVar("T")
ROUNDS_MAX = 10  # of move, ask and look; each loses only to somebody who moved the job
CANCEL_PATIENCE_S = 5.0  # who cancels waits for an answer, while somebody's transaction may lock the job


@dataclass(frozen=True, slots=True)
class CancelResult:
    """What a cancel did. `moved`: it never ran again. Otherwise `holder` runs it and was asked to stop."""

    moved: MovedJob | None
    holder: str | None = None


@operation(patience_s=CANCEL_PATIENCE_S)
def cancel(
    job_id: str, *, actor: str | None, reason: str | None = None, only_queued: bool = False
) -> Steps[CancelResult]:
    """Cancel a job: at once when nobody runs it, by request when somebody does (not with `only_queued`).

    Repeating it after an unknown outcome is harmless, but not silent: what the first one cancelled is refused to
    the second, with its state.

    Raises:
        IllegalMove: it has ended already, or it runs and `only_queued` was given. `state` says which.
        JobNotFound: there is no such job.
        Busy: a transaction of somebody's locks the job. Nothing was asked; try again.
    """

    def cancelled() -> Steps[CancelResult | None]:
        idle = yield from execute("cancel_idle", ids=[job_id], actor=actor, reason=reason)
        if idle:
            (moved,) = yield from archive(first_column(idle))
            return CancelResult(moved)
        if not only_queued:
            asked = yield from execute("ask_cancel", ids=[job_id], actor=actor, reason=reason)
            if asked:
                return CancelResult(None, str(asked[0][1]))
        return None

    unfit = partial(uncancellable, only_queued=only_queued)
    return (yield from moved_or_refused(job_id, cancelled, unfit, "cancel it again"))


@operation()
def expire(*, limit: int, actor: str | None) -> Steps[list[MovedJob]]:
    """End waiting and queued jobs that are past their expiry. Locked rows are left for the next sweep."""
    rows = yield from execute("expire", limit=limit, actor=actor)
    return (yield from archive(first_column(rows)))


@operation()
def revive(
    job_id: str, *, actor: str | None, reason: str | None = None, ended_by_us: int | None = None
) -> Steps[Requeued]:
    """Queue a finished job again: budgets are full again, the attempt goes on. With `ended_by_us` (microseconds) only
    if it has ended by then.

    Locks the job's row, then its key. What people do; the system's own repetition is a retry.

    Raises:
        IllegalMove: it has not ended, or has ended again since. Wait or cancel.
        RevivedTooSoon: another job must end before. Wait for it, or cancel it.
        KeyConflict: another job has its key by now.
        JobGone: it is ephemeral and succeeded. Only its failures can be revived.
        JobNotFound: there is no such job.
    """
    for _ in range(ROUNDS_MAX):
        locked = yield from _lock_finished(job_id, ended_by_us)
        if locked[3] is not None:
            raise too_soon(job_id, str(locked[3]))
        scope, key = text_or_none(locked[1]), text_or_none(locked[2])
        if scope is not None and key is not None:
            yield from _take_key_back(job_id, scope, key)
        rows = yield from execute("revive", ids=[job_id], actor=actor, reason=reason)
        if rows:
            return requeued_rows(rows)[0]
        # Somebody has revived what must end before, and the next look tells it. Or the row is locked, but its whole
        # period is being detached: a later statement does not see it any more.
    raise not_found(job_id)


@operation()
def delete(ids: Sequence[str]) -> Steps[list[str]]:
    """Remove finished jobs with their timeline and logs; returns those that were removed. Live ones stay."""
    return (yield from forget_notes(first_column((yield from execute("delete", ids=list(ids))))))


def _lock_finished(job_id: str, ended_by_us: int | None) -> Steps[Row]:
    """Lock a finished job's row."""

    def locked() -> Steps[Row | None]:
        rows = yield from execute("lock_finished", ids=[job_id], ended_by=ended_by_us)
        return rows[0] if rows else None

    unfit = partial(unrevivable, ended_by_us=ended_by_us)
    return (yield from moved_or_refused(job_id, locked, unfit, "revive it again"))


def moved_or_refused(
    job_id: str,
    move: Callable[[], Steps[T | None]],
    unfit: Callable[[str, Fence | None], FencerowError | None],
    again: str,
) -> Steps[T]:
    """What a move of one job brought, or why the job cannot move: `unfit` says so of where it stands.

    A bounded loop, because between the move and the look others move the job too.
    """
    for _ in range(ROUNDS_MAX):
        done = yield from move()
        if done is not None:
            return done
        # A later statement than the refusal: in the same one it would report a state from before it.
        fence = (yield from read_fences([job_id]).steps()).get(job_id)
        refused = unfit(job_id, fence)
        if refused is not None:
            raise refused
    raise IllegalMove(f"job {job_id} kept changing its state", "others change it at the same time", again)


def too_soon(job_id: str, before: str) -> RevivedTooSoon:
    """The error for a job before which another one must end."""
    return RevivedTooSoon(
        f"job {job_id} cannot be revived yet",
        f"job {before} has not ended or is revived with it, and one undoes what the other does",
        f"wait for the end of {before} (`fencerow jobs show {before}`), or cancel it; then revive this one",
    )


def _take_key_back(job_id: str, scope: str, key: str) -> Steps[None]:
    """A revived job owns its key again, unless another job does. A forgotten key stays forgotten."""
    if (yield from execute("keep_key", keys=key_document([(job_id, scope, key)]))):
        return
    wanted = key_document([(job_id, scope, key)])
    for _, _, owner, _, expired, _ in (yield from execute("read_keys", keys=wanted)):
        if not expired:
            raise KeyConflict(
                f"key {key!r} in scope {scope!r} belongs to job {owner} now",
                f"job {job_id} cannot run under it again",
                "submit the work again under another key",
                job_id=str(owner),
            )


def key_document(owned: Sequence[tuple[str, str, str]]) -> str:
    """Jobs with the scopes and keys that they were submitted under, as the statements take them."""
    return msgspec.json.encode(
        [{"job_id": job_id, "scope": scope, "key": key} for job_id, scope, key in owned]
    ).decode()


def uncancellable(job_id: str, fence: Fence | None, *, only_queued: bool) -> FencerowError | None:
    """Why a job that stands so cannot be cancelled; None if it can."""
    if fence is None:
        return not_found(job_id)
    if fence.state in FINAL or (only_queued and fence.state is State.RUNNING):
        return IllegalMove(
            f"job {job_id} is {fence.state}",
            "only a waiting, queued or running job can be cancelled",
            "leave it" if fence.state in FINAL else "ask without only_queued",
            state=fence.state,
        )
    return None


def unrevivable(job_id: str, fence: Fence | None, *, ended_by_us: int | None = None) -> FencerowError | None:
    """Why a job that stands so cannot be revived, or not as one that ended by then; None if it can."""
    if fence is None:
        return not_found(job_id)
    if fence.spent:
        return JobGone(
            f"job {job_id} succeeded and left nothing to revive",
            "it is ephemeral",
            "submit the work again",
        )
    if fence.state not in FINAL:
        return IllegalMove(
            f"job {job_id} is {fence.state}",
            "only a finished job can be revived",
            "wait for its end",
            state=fence.state,
        )
    if ended_by_us is not None:
        return IllegalMove(f"job {job_id} has ended again", "it has run since it was looked at", "look again")
    return None


def not_found(job_id: str) -> JobNotFound:
    """The error for an id that no job has."""
    return JobNotFound(
        f"there is no job {job_id}",
        "neither live nor finished; retention may have removed it",
        "check the id",
    )


def forget_notes(ids: list[str]) -> Steps[list[str]]:
    """Remove what was noted about jobs that this transaction has removed. Part of other operations."""
    if ids:
        yield from execute("forget_notes", ids=ids)
    return ids
