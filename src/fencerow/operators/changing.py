"""Change of a job that nobody runs: find it, change it, and tell the workers of its new place."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.core.client.moving import NOT_NOW, check_reason
from fencerow.core.client.refs import Ref, resolving
from fencerow.core.errors import IllegalMove, OutcomeUnknown
from fencerow.core.model.change import JobChanged
from fencerow.core.model.lane import family_of
from fencerow.core.model.state import State
from fencerow.core.model.wakeup import Arrived, Queued, encode
from fencerow.db.run import Procedure, WakeUp, ask, joining
from fencerow.operators import changes
from fencerow.operators.job_change import JobChange


def changing(
    ref: Ref, wanted: JobChange, actor: str | None, reason: str | None, connection: object | None
) -> Procedure[JobChanged]:
    """Change the job. On a `connection` of the caller's nobody is told: a sweep finds what is committed there."""
    check_reason(reason)
    job_id = yield from resolving(ref)
    if connection is not None:
        change = changes.change(job_id, wanted, actor=actor, reason=reason)
        return (yield from ask(joining(change, connection)))
    done = yield from changed_surely(job_id, wanted, actor=actor, reason=reason)
    yield from tell_changed([done])
    return done


def changed_surely(
    job_id: str, wanted: JobChange, *, actor: str | None, reason: str | None
) -> Procedure[JobChanged]:
    """Change a job. When the answer is lost it is made again, which comes to the same, or nearly if it counts from now.

    Raises:
        OutcomeUnknown: the database could not be asked again, or others moved the job since.
    """
    try:
        return (yield from ask(changes.change(job_id, wanted, actor=actor, reason=reason)))
    except OutcomeUnknown as error:
        return (yield from changed_again(job_id, wanted, actor=actor, reason=reason, doubt=error))


def changed_again(
    job_id: str, wanted: JobChange, *, actor: str | None, reason: str | None, doubt: OutcomeUnknown
) -> Procedure[JobChanged]:
    """Change a job that may have been changed so already.

    Raises:
        OutcomeUnknown: the database could not be asked, or the job runs or has ended: changed before or not.
    """
    try:
        return (yield from ask(changes.change(job_id, wanted, actor=actor, reason=reason)))
    except (*NOT_NOW, IllegalMove):
        raise doubt from None


def tell_changed(done: Sequence[JobChanged]) -> Procedure[None]:
    """One wake-up for each lane, with the first of its jobs: it may lie behind the lane's mark."""
    first: dict[tuple[str, int, str], int] = {}
    for job in done:
        if job.state == State.QUEUED:
            lane = (job.queue, job.priority, family_of(job.lane))
            first[lane] = min(job.run_at_us, first.get(lane, job.run_at_us))
    come = [encode(Arrived())] if any(job.state == State.WAITING and job.changes for job in done) else []
    yield WakeUp(
        [
            *(
                encode(Queued(queue, priority, at_us, lane))
                for (queue, priority, lane), at_us in first.items()
            ),
            *come,
        ]
    )
