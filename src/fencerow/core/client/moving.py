"""Cancel, revive, delete: find the job, move it, and say what others should hear."""

from __future__ import annotations

from fencerow.core.client.refs import CancelAnswer, Ref, reading, resolving
from fencerow.core.client.settling import cancelled_surely, deleted_surely, revived_surely
from fencerow.core.client.timeline import timeline_of
from fencerow.core.db.run import Procedure, WakeUp, ask
from fencerow.core.errors import IllegalMove, JobNotFound
from fencerow.core.model.job import Happening, LogLine
from fencerow.core.model.text import check_text
from fencerow.core.model.wakeup import CancelAsked, Queued, encode, encode_ended
from fencerow.core.store import store

REASON_LENGTH_MAX = 500


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
