"""Cancel, revive, delete: find the job, move it, and say what others should hear; and what happened to it.

A move whose answer was lost is settled by reading what became of it, and repeated only when it did not happen.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from fencerow.core.client.refs import CancelAnswer, Ref, reading, resolving
from fencerow.core.db.run import Procedure, WakeUp, ask
from fencerow.core.errors import Busy, IllegalMove, JobNotFound, OutcomeUnknown, Unavailable
from fencerow.core.model.job import Happening, JobRecord, LogLine
from fencerow.core.model.state import State
from fencerow.core.model.text import check_text
from fencerow.core.model.wakeup import CancelAsked, Queued, encode, encode_ended
from fencerow.core.store import store
from fencerow.core.store.finish import Moved, Requeued
from fencerow.core.store.moves import Cancelled

REASON_LENGTH_MAX = 500
NOT_NOW = (Unavailable, Busy)


def cancelling(ref: Ref, actor: str | None, reason: str | None, only_queued: bool) -> Procedure[CancelAnswer]:
    """Cancel the job, or ask whoever runs it."""
    check_reason(reason)
    job_id = yield from resolving(ref)
    done = yield from cancelled_surely(job_id, actor=actor, reason=reason, only_queued=only_queued)
    if done.moved is not None:
        yield WakeUp(encode_ended([job_id] if done.moved.awaited else []))
        return CancelAnswer.CANCELLED
    yield WakeUp([] if done.holder is None else [encode(CancelAsked(done.holder, job_id))])
    return CancelAnswer.REQUESTED


def reviving(ref: Ref, actor: str | None, reason: str | None) -> Procedure[None]:
    """Queue the finished job again."""
    check_reason(reason)
    job_id = yield from resolving(ref)
    queued = yield from revived_surely(job_id, actor=actor, reason=reason)
    yield WakeUp([encode(Queued(queued.queue, queued.priority, queued.run_at_us))])


def deleting(ref: Ref) -> Procedure[None]:
    """Delete the job, or say why not."""
    job_id = yield from resolving(ref)
    if (yield from deleted_surely(job_id)):
        return
    fence = (yield from ask(store.read_fences([job_id]))).get(job_id)
    if fence is None:
        raise JobNotFound(f"there is no job {job_id}", "neither live nor finished", "check the id")
    raise IllegalMove(
        f"job {job_id} is {fence.state}",
        "only a finished job can be deleted",
        "cancel it first",
        state=fence.state,
    )


def timeline_reading(ref: Ref) -> Procedure[list[Happening]]:
    """The timeline of the job."""
    job = yield from reading(ref)
    return timeline_of(job, (yield from ask(store.events(job.id))))


def logs_reading(ref: Ref) -> Procedure[list[LogLine]]:
    """The lines kept with the job."""
    job_id = yield from resolving(ref)
    return (yield from ask(store.logs(job_id)))


def check_reason(reason: str | None) -> None:
    """A reason that can be kept, if one is given."""
    if reason is not None:
        check_text(reason, "the reason", REASON_LENGTH_MAX, lines=True)


def cancelled_surely(
    job_id: str, *, actor: str | None, reason: str | None, only_queued: bool
) -> Procedure[Cancelled]:
    """Cancel a job. When the answer is lost, ask again: a job that is cancelled then is what was wanted.

    Raises:
        OutcomeUnknown: the database could not be asked again either.
    """
    cancel = store.cancel(job_id, actor=actor, reason=reason, only_queued=only_queued)
    try:
        return (yield from ask(cancel))
    except OutcomeUnknown as error:
        doubt = error
    try:
        return (yield from ask(cancel))
    except IllegalMove as refused:
        if refused.state != State.CANCELLED:
            raise
        return Cancelled(Moved(job_id, awaited=True))  # whether somebody waits is not known any more
    except NOT_NOW:
        raise doubt from None


def revived_surely(job_id: str, *, actor: str | None, reason: str | None) -> Procedure[Requeued]:
    """Revive a job. When the answer is lost, look whether it was revived since; only if not, revive it again.

    Raises:
        OutcomeUnknown: the database could not be asked.
    """
    revive = store.revive(job_id, actor=actor, reason=reason)
    began = time.monotonic()
    try:
        return (yield from ask(revive))
    except OutcomeUnknown as error:
        doubt = error
    try:
        job = (yield from ask(store.read([job_id]))).get(job_id)
        now_us = yield from ask(store.clock())
        since_us = now_us - round((time.monotonic() - began) * 1_000_000)
        if job is not None and job.revived_at_us is not None and job.revived_at_us >= since_us:
            return Requeued(job.id, job.queue, job.priority, job.run_at_us)
        return (yield from ask(revive))
    except NOT_NOW:
        raise doubt from None


def deleted_surely(job_id: str) -> Procedure[bool]:
    """Delete a finished job; false when it was not there or has not ended. A lost answer is settled by looking.

    Raises:
        OutcomeUnknown: the database could not be asked.
    """
    delete = store.delete([job_id])
    try:
        return bool((yield from ask(delete)))
    except OutcomeUnknown as error:
        doubt = error
    try:
        if job_id not in (yield from ask(store.read_fences([job_id]))):
            return True
        return bool((yield from ask(delete)))
    except NOT_NOW:
        raise doubt from None


def timeline_of(job: JobRecord, noted: Sequence[Happening]) -> list[Happening]:
    """What happened to a job, in order: the row's own columns tell the ordinary, noted events the exceptions.

    The row knows its last claim only. What ended an earlier attempt noted when and by whom that attempt was claimed, so
    every claim of a job's life is told.
    """
    kinds = {each.kind for each in noted if each.at_us == job.ended_at_us}
    own = [Happening(at_us=job.submitted_at_us, kind="submitted", attempt=0, actor=job.submitted_by)]
    claims = {claim.attempt: claim for claim in _claims(job, noted)}
    ends = []
    if job.ended_at_us is not None and job.state.value not in kinds:
        ends.append(Happening(at_us=job.ended_at_us, kind=job.state.value, attempt=job.attempt))
    # Stable: of things at one instant the submit comes first, then claims, and the end last.
    return sorted([*own, *claims.values(), *noted, *ends], key=lambda each: each.at_us)


def _claims(job: JobRecord, noted: Iterable[Happening]) -> Iterable[Happening]:
    """Each claim of the job, as the events that ended them and the row itself tell."""
    for each in noted:
        if isinstance(each.detail, dict) and isinstance(each.detail.get("claimed_at_us"), int):
            # What a reaper did names the holder apart, if it was known.
            by_reaper = each.kind in ("reclaimed", "timed_out")
            holder = each.detail.get("holder") if by_reaper else each.actor
            yield Happening(
                at_us=each.detail["claimed_at_us"], kind="claimed", attempt=each.attempt, actor=holder
            )
    if job.claimed_at_us is not None:
        yield Happening(at_us=job.claimed_at_us, kind="claimed", attempt=job.attempt, actor=job.holder)
