"""Cancel and revive: find the job, move it, and say what others should hear.

A move whose answer was lost is settled by reading what became of it, and repeated only when it did not happen.
"""

from __future__ import annotations

import time

from fencerow.core.client.refs import CancelAnswer, Ref, resolving
from fencerow.core.errors import Busy, IllegalMove, OutcomeUnknown, Unavailable
from fencerow.core.model.state import State
from fencerow.core.model.wakeup import Arrived, CancelAsked, encode, encode_ended
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob, Requeued
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.moves import CancelResult
from fencerow.db.run import Operation, Procedure, WakeUp, ask
from fencerow.db.text import check_text

REASON_LENGTH_MAX = 500
NOT_NOW = (Unavailable, Busy)


def cancelling(ref: Ref, actor: str | None, reason: str | None, only_queued: bool) -> Procedure[CancelAnswer]:
    """Cancel the job, or ask whoever runs it."""
    check_reason(reason)
    job_id = yield from resolving(ref)
    done = yield from cancelled_surely(job_id, actor=actor, reason=reason, only_queued=only_queued)
    if done.moved is not None:
        free = [encode(Arrived())] if done.moved.had_turns else []
        yield WakeUp(encode_ended([job_id] if done.moved.awaited else []) + free)
        return CancelAnswer.CANCELLED
    yield WakeUp([] if done.holder is None else [encode(CancelAsked(done.holder, job_id))])
    return CancelAnswer.REQUESTED


def reviving(ref: Ref, actor: str | None, reason: str | None) -> Procedure[None]:
    """Queue the finished job again."""
    check_reason(reason)
    job_id = yield from resolving(ref)
    queued = yield from revived_surely(job_id, actor=actor, reason=reason)
    yield WakeUp(hints_of_queued([queued]))


def check_reason(reason: str | None) -> None:
    """A reason that can be kept, if one is given."""
    if reason is not None:
        check_text(reason, "the reason", REASON_LENGTH_MAX, lines=True)


def cancelled_surely(
    job_id: str, *, actor: str | None, reason: str | None, only_queued: bool
) -> Procedure[CancelResult]:
    """Cancel a job. When the answer is lost, ask again: a job that is cancelled then is what was wanted.

    Raises:
        OutcomeUnknown: the database could not be asked again either.
    """
    cancel = store.cancel(job_id, actor=actor, reason=reason, only_queued=only_queued)
    try:
        return (yield from ask(cancel))
    except OutcomeUnknown as error:
        return (yield from cancelled_again(job_id, cancel, error))


def cancelled_again(
    job_id: str, cancel: Operation[CancelResult], doubt: OutcomeUnknown
) -> Procedure[CancelResult]:
    """Cancel a job that may have been cancelled already.

    Raises:
        OutcomeUnknown: the database could not be asked.
    """
    try:
        return (yield from ask(cancel))
    except IllegalMove as refused:
        if refused.state != State.CANCELLED:
            raise
        return CancelResult(MovedJob(job_id, awaited=True))  # whether somebody waits is not known any more
    except NOT_NOW:
        raise doubt from None


def revived_surely(
    job_id: str, *, actor: str | None, reason: str | None, ended_by_us: int | None = None
) -> Procedure[Requeued]:
    """Revive a job. When the answer is lost, look whether it was revived since; only if not, revive it again.

    Raises:
        OutcomeUnknown: the database could not be asked.
    """
    revive = store.revive(job_id, actor=actor, reason=reason, ended_by_us=ended_by_us)
    began = time.monotonic()
    try:
        return (yield from ask(revive))
    except OutcomeUnknown as error:
        return (yield from revived_again(job_id, revive, began, error))


def revived_again(
    job_id: str, revive: Operation[Requeued], began: float, doubt: OutcomeUnknown
) -> Procedure[Requeued]:
    """Revive a job that may have been revived since `began` (by `time.monotonic`).

    Raises:
        OutcomeUnknown: the database could not be asked.
    """
    try:
        job = (yield from ask(store.read([job_id]))).get(job_id)
        now_us = yield from ask(store.clock())
        since_us = now_us - round((time.monotonic() - began) * 1_000_000)
        if job is not None and job.revived_at_us is not None and job.revived_at_us >= since_us:
            return Requeued(job.id, job.queue, job.priority, job.run_at_us)
        return (yield from ask(revive))
    except NOT_NOW:
        raise doubt from None
