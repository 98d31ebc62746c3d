"""Moves of many jobs, a batch at a time: together what can be moved together, alone what is left.

A batch is one transaction. What others have locked, what a guard refuses, and what may have happened when an answer
was lost is settled job by job, as the verbs for one job do it. So each job has the outcome that it would have alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fencerow.core.client.moving import cancelled_again, cancelled_surely, revived_again, revived_surely
from fencerow.core.errors import Busy, FencerowError, IllegalMove, InvalidInput, JobNotFound, OutcomeUnknown
from fencerow.core.model.change import JobChanged
from fencerow.core.model.job import Fence
from fencerow.core.model.state import FINAL
from fencerow.core.model.wakeup import CancelAsked, encode, encode_ended
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob, Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.moves import CancelResult, uncancellable, unrevivable
from fencerow.db.run import Procedure, WakeUp, ask
from fencerow.operators.at_once import cancel_many, delete_many, revive_many
from fencerow.operators.changes import change_many, unchangeable
from fencerow.operators.changing import changed_again, changed_surely, tell_changed
from fencerow.operators.job_change import JobChange
from fencerow.operators.job_verbs import deleting, undeletable

BATCH = 500  # jobs in one transaction: it takes tens of milliseconds, in which SQLite has no other writer
BUSY_MAX = 3  # jobs in a row that others lock, before the rest is left: each of them took seconds


@dataclass(frozen=True, slots=True)
class JobDone:
    """What became of one job; `error` is set if it was not moved."""

    id: str
    outcome: str
    error: FencerowError | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A move whose answer was lost: it may have happened, at `began` (by `time.monotonic`) or later."""

    error: OutcomeUnknown
    began: float


class ManyMove(Protocol):
    """A verb for many jobs."""

    def together(self, ids: Sequence[str]) -> Procedure[dict[str, str]]:
        """Move in one transaction what can be moved so; the outcomes of those that were moved."""
        ...

    def alone(self, job_id: str, doubt: Doubt | None) -> Procedure[str]:
        """Move one; its outcome."""
        ...

    def refusal(self, job_id: str, fence: Fence | None) -> FencerowError | None:
        """Why a job that stands so is not moved; None if it may be."""
        ...


@dataclass(frozen=True, slots=True)
class CancelMany:
    """Cancel jobs at once if nobody runs them, else ask their workers (not with `only_queued`)."""

    actor: str | None
    reason: str | None
    only_queued: bool = False

    def together(self, ids: Sequence[str]) -> Procedure[dict[str, str]]:
        """See `ManyMove`."""
        found = yield from ask(
            cancel_many(ids, actor=self.actor, reason=self.reason, only_queued=self.only_queued)
        )
        yield from _tell_cancelled(found.moved, found.asked)
        return {
            **{job.id: "cancelled" for job in found.moved},
            **dict.fromkeys(found.asked, "asked to stop"),
        }

    def alone(self, job_id: str, doubt: Doubt | None) -> Procedure[str]:
        """See `ManyMove`."""
        done = yield from self._cancelled(job_id, doubt)
        yield from _tell_cancelled(
            [] if done.moved is None else [done.moved],
            {} if done.holder is None else {job_id: done.holder},
        )
        return "asked to stop" if done.moved is None else "cancelled"

    def refusal(self, job_id: str, fence: Fence | None) -> FencerowError | None:
        """See `ManyMove`."""
        return uncancellable(job_id, fence, only_queued=self.only_queued)

    def _cancelled(self, job_id: str, doubt: Doubt | None) -> Procedure[CancelResult]:
        if doubt is None:
            return (
                yield from cancelled_surely(
                    job_id, actor=self.actor, reason=self.reason, only_queued=self.only_queued
                )
            )
        cancel = store.cancel(job_id, actor=self.actor, reason=self.reason, only_queued=self.only_queued)
        return (yield from cancelled_again(job_id, cancel, doubt.error))


@dataclass(frozen=True, slots=True)
class ReviveMany:
    """Queue finished jobs again; with `ended_by_us` (microseconds) only those that have ended by then."""

    actor: str | None
    reason: str | None
    ended_by_us: int | None = None

    def together(self, ids: Sequence[str]) -> Procedure[dict[str, str]]:
        """See `ManyMove`."""
        queued = yield from ask(
            revive_many(ids, actor=self.actor, reason=self.reason, ended_by_us=self.ended_by_us)
        )
        yield from _tell_queued(queued)
        return {job.id: "queued" for job in queued}

    def alone(self, job_id: str, doubt: Doubt | None) -> Procedure[str]:
        """See `ManyMove`."""
        if doubt is None:
            queued = yield from revived_surely(
                job_id, actor=self.actor, reason=self.reason, ended_by_us=self.ended_by_us
            )
        else:
            revive = store.revive(job_id, actor=self.actor, reason=self.reason, ended_by_us=self.ended_by_us)
            queued = yield from revived_again(job_id, revive, doubt.began, doubt.error)
        yield from _tell_queued([queued])
        return "queued"

    def refusal(self, job_id: str, fence: Fence | None) -> FencerowError | None:
        """See `ManyMove`."""
        return unrevivable(job_id, fence)


@dataclass(frozen=True, slots=True)
class ChangeMany:
    """Change jobs that nobody runs."""

    actor: str | None
    reason: str | None
    wanted: JobChange

    def together(self, ids: Sequence[str]) -> Procedure[dict[str, str]]:
        """See `ManyMove`."""
        done = yield from ask(change_many(ids, self.wanted, actor=self.actor, reason=self.reason))
        yield from tell_changed(done)
        return {job.id: _changed(job) for job in done}

    def alone(self, job_id: str, doubt: Doubt | None) -> Procedure[str]:
        """See `ManyMove`."""
        if doubt is None:
            done = yield from changed_surely(job_id, self.wanted, actor=self.actor, reason=self.reason)
        else:
            done = yield from changed_again(
                job_id, self.wanted, actor=self.actor, reason=self.reason, doubt=doubt.error
            )
        yield from tell_changed([done])
        return _changed(done)

    def refusal(self, job_id: str, fence: Fence | None) -> FencerowError | None:
        """See `ManyMove`."""
        return unchangeable(job_id, fence)


@dataclass(frozen=True, slots=True)
class DeleteMany:
    """Remove finished jobs with their timeline and logs."""

    def together(self, ids: Sequence[str]) -> Procedure[dict[str, str]]:
        """See `ManyMove`."""
        return dict.fromkeys((yield from ask(delete_many(ids))), "deleted")

    def alone(self, job_id: str, doubt: Doubt | None) -> Procedure[str]:
        """See `ManyMove`."""
        yield from deleting(job_id, None if doubt is None else doubt.error)
        return "deleted"

    def refusal(self, job_id: str, fence: Fence | None) -> FencerowError | None:
        """See `ManyMove`."""
        return None if fence is not None and fence.state in FINAL else undeletable(job_id, fence)


def moving(ids: Sequence[str], move: ManyMove, done: list[JobDone]) -> Procedure[None]:
    """Move one batch, and put what became of each job into `done` as soon as it is known, also before an error.

    Raises:
        Busy: others locked several jobs in a row for seconds.
        Unavailable, OutcomeUnknown and their kin: the database could not be asked; what is not in `done` is unknown.
    """
    moved, doubt = yield from _together(ids, move)
    done += [JobDone(job_id, moved[job_id]) for job_id in ids if job_id in moved]
    left = [job_id for job_id in ids if job_id not in moved]
    if not left:
        return
    # What may have happened already must not be refused for it.
    fences = {} if doubt else (yield from ask(store.read_fences(left)))
    busy = 0
    for job_id in left:
        refused = None if doubt else move.refusal(job_id, fences.get(job_id))
        one = JobDone(job_id, "left", refused) if refused else (yield from _alone(job_id, move, doubt))
        busy = busy + 1 if isinstance(one.error, Busy) else 0
        if isinstance(one.error, Busy) and busy >= BUSY_MAX:
            raise one.error
        done.append(one)


def _together(ids: Sequence[str], move: ManyMove) -> Procedure[tuple[dict[str, str], Doubt | None]]:
    began = time.monotonic()
    try:
        return (yield from move.together(ids)), None
    except Busy:
        return {}, None  # something that is needed for one of them is locked: the others go on alone
    except OutcomeUnknown as error:
        return {}, Doubt(error, began)


def _alone(job_id: str, move: ManyMove, doubt: Doubt | None) -> Procedure[JobDone]:
    """One job that others moved, lock or hold the key of, or that the move does not fit, must not keep the rest."""
    try:
        return JobDone(job_id, (yield from move.alone(job_id, doubt)))
    except (IllegalMove, JobNotFound, InvalidInput, Busy) as error:
        return JobDone(job_id, "left", error)


def _changed(job: JobChanged) -> str:
    return "changed" if job.changes else "as it was"


def _tell_cancelled(moved: Sequence[MovedJob], asked: dict[str, str]) -> Procedure[None]:
    ended = encode_ended(job.id for job in moved if job.awaited)
    yield WakeUp([*ended, *(encode(CancelAsked(holder, job_id)) for job_id, holder in asked.items())])


def _tell_queued(queued: Sequence[Requeued]) -> Procedure[None]:
    yield WakeUp(hints_of_queued(queued))
