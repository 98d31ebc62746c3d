"""Cancel, revive, delete: find the job, move it, and say what others should hear."""

from __future__ import annotations

from fencerow.core.client.refs import CancelAnswer, Ref, reading, resolving
from fencerow.core.client.settling import cancelled_surely, deleted_surely, revived_surely
from fencerow.core.client.talk import Say, Talk, ask
from fencerow.core.client.timeline import timeline_of
from fencerow.core.errors import IllegalMove, JobNotFound
from fencerow.core.model.job import Happening, LogLine
from fencerow.core.model.text import check_text
from fencerow.core.model.wakeup import CancelAsked, Queued, encode, encode_ended
from fencerow.core.store import store
from fencerow.operators.queues import pause_queue, resume_queue

REASON_LENGTH_MAX = 500
QUEUE_LENGTH_MAX = 100


def cancelling(ref: Ref, actor: str | None, reason: str | None, only_queued: bool) -> Talk[CancelAnswer]:
    """Cancel the job, or ask whoever runs it."""
    _check_reason(reason)
    job_id = yield from resolving(ref)
    done = yield from cancelled_surely(job_id, actor=actor, reason=reason, only_queued=only_queued)
    if done.moved is not None:
        yield Say(encode_ended([job_id] if done.moved.awaited else []))
        return CancelAnswer.CANCELLED
    yield Say([] if done.holder is None else [encode(CancelAsked(done.holder, job_id))])
    return CancelAnswer.REQUESTED


def reviving(ref: Ref, actor: str | None, reason: str | None) -> Talk[None]:
    """Queue the finished job again."""
    _check_reason(reason)
    job_id = yield from resolving(ref)
    queued = yield from revived_surely(job_id, actor=actor, reason=reason)
    yield Say([encode(Queued(queued.queue, queued.priority, queued.run_at_us))])


def deleting(ref: Ref) -> Talk[None]:
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


def timeline_reading(ref: Ref) -> Talk[list[Happening]]:
    """The timeline of the job."""
    job = yield from reading(ref)
    return timeline_of(job, (yield from ask(store.events(job.id))))


def logs_reading(ref: Ref) -> Talk[list[LogLine]]:
    """The lines kept with the job."""
    job_id = yield from resolving(ref)
    return (yield from ask(store.logs(job_id)))


def pausing(queue: str, actor: str | None, reason: str | None) -> Talk[bool]:
    """Pause the queue; false when it was paused already."""
    check_text(queue, "queue", QUEUE_LENGTH_MAX)
    _check_reason(reason)
    return (yield from ask(pause_queue(queue, actor=actor, reason=reason)))


def resuming(queue: str) -> Talk[bool]:
    """Resume the queue, and wake its workers for what has gathered; false when it was not paused."""
    check_text(queue, "queue", QUEUE_LENGTH_MAX)
    if not (yield from ask(resume_queue(queue))):
        return False
    lanes, now_us = yield from ask(store.lanes(queue))
    due = [Queued(queue, lane.priority or 0, lane.first_us) for lane in lanes if lane.first_us <= now_us]
    yield Say([encode(message) for message in due])
    return True


def _check_reason(reason: str | None) -> None:
    if reason is not None:
        check_text(reason, "the reason", REASON_LENGTH_MAX, lines=True)
