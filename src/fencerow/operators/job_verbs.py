"""Looking at jobs and removing them: lists, timelines, logs; what `Client` is given for it, sync and async."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fencerow.core.client.base import ClientBase
from fencerow.core.client.moving import NOT_NOW
from fencerow.core.client.refs import Ref, reading, resolving
from fencerow.core.errors import FencerowError, IllegalMove, OutcomeUnknown
from fencerow.core.model.job import Fence, Happening, JobRecord
from fencerow.core.model.labels import Plain
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.moves import not_found
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask

if TYPE_CHECKING:
    from fencerow.operators.looking import LogLine


class JobVerbs(ClientBase):
    """Each method has an async twin with an `a` in front."""

    @verb
    def list_jobs(
        self,
        *,
        queue: str | None = None,
        name: str | None = None,
        states: Sequence[State | str] | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Plain] | None = None,
        scope: str | None = None,
        key: str | None = None,
        before_id: str | None = None,
        limit: int = 50,
    ) -> Procedure[list[JobRecord]]:
        """A page of jobs that match, the newest first, without their payloads.

        `states`: members of `State` or their names. `tags`: a job must have all of them. `metadata`:
        top-level fields with plain values that a job must have. Pass the id of the last job as `before_id` to
        get the next page.

        Raises:
            InvalidInput: there is no such state; no job can have such a tag or field; a value is not a plain
                one; the limit is not from 1 to 10,000; `before_id` is no id.
        """
        from fencerow.operators.finding import chosen_by, listing  # who only submits never loads it

        chosen = chosen_by(
            queue=queue,
            name=name,
            states=states,
            tags=tags,
            metadata=metadata,
            scope=scope,
            key=key,
            before_id=before_id,
        )
        return (yield from listing(chosen, limit))

    alist_jobs = averb(list_jobs)

    @verb
    def timeline(self, ref: Ref) -> Procedure[list[Happening]]:
        """What happened to a job, in order: who submitted it, its failures, who cancelled it.

        Raises:
            JobNotFound: it is not there.
        """
        from fencerow.operators import looking  # who only submits never loads it

        job = yield from reading(ref)
        return timeline_of(job, (yield from ask(looking.events(job.id))))

    atimeline = averb(timeline)

    @verb
    def logs(self, ref: Ref) -> Procedure[list[LogLine]]:
        """The log lines of a job, in order; an empty list if there is no such job."""
        from fencerow.operators import looking  # who only submits never loads it

        job_id = yield from resolving(ref)
        return (yield from ask(looking.logs(job_id)))

    alogs = averb(logs)

    @verb
    def delete(self, ref: Ref) -> Procedure[None]:
        """Remove a finished job with its timeline and logs. Its key stays for the lifetime that it was given.

        Raises:
            IllegalMove: it has not ended. Cancel it first.
            JobNotFound: it is not there.
        """
        yield from deleting((yield from resolving(ref)))

    adelete = averb(delete)


def deleting(job_id: str, doubt: OutcomeUnknown | None = None) -> Procedure[None]:
    """Delete a finished job. `doubt`: the error of a delete that may have happened, so that a missing job is one.

    Raises:
        IllegalMove: it has not ended. JobNotFound: it is not there.
        OutcomeUnknown: the database could not be asked what became of a delete.
    """
    if (yield from _deleted_surely(job_id, doubt)):
        return
    fence = (yield from ask(store.read_fences([job_id]))).get(job_id)
    raise undeletable(job_id, fence)


def undeletable(job_id: str, fence: Fence | None) -> FencerowError:
    """Why a job that stands so was not deleted."""
    if fence is None:
        return not_found(job_id)
    return IllegalMove(
        f"job {job_id} is {fence.state}",
        "only a finished job can be deleted",
        "cancel it first",
        state=fence.state,
    )


def _deleted_surely(job_id: str, doubt: OutcomeUnknown | None) -> Procedure[bool]:
    """Delete a finished job; false when it was not there or has not ended. A lost answer is settled by looking."""
    delete = store.delete([job_id])
    if doubt is None:
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
