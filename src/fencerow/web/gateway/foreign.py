"""What a token that is good for some queues may do to jobs, and what it is told of all others: nothing.

It submits the jobs of its queues to its queues. A key, an id or a unique key that others use is taken, and that is all.
"""

from __future__ import annotations

from fencerow.core.app import Call as JobCall
from fencerow.core.app.options import submit_options
from fencerow.core.app.unknown import unknown_job
from fencerow.core.errors import JobGone, JobNotFound, KeyConflict, UnknownJob
from fencerow.web.errors import NotAllowed
from fencerow.web.gateway.given import Submit, UniqueGiven, options_of
from fencerow.web.gateway.reached import reached
from fencerow.web.gateway.route import Call


def carried(call: Call) -> dict[str, str]:
    """What goes with the job, so that its worker's log and traces can be found from the request."""
    origin = call.origin
    found = {"correlation-id": origin.correlation_id}
    if origin.traceparent is not None:
        found["traceparent"] = origin.traceparent
        if origin.tracestate:
            found["tracestate"] = origin.tracestate
    return found


def job_call(call: Call, wanted: Submit) -> JobCall[object]:
    """The call of the job, checked by its declaration and by what this caller may.

    Raises:
        InvalidInput: arguments or options cannot be kept; see its subclasses. NotAllowed: the queues are not theirs.
    """
    _check_reach(call, wanted)
    options = submit_options(**options_of(wanted), headers=carried(call))
    try:
        return call.app.call_by_name(wanted.job, wanted.args, options)
    except UnknownJob as error:
        raise unknown_to(call, wanted.job, error) from None


def _check_reach(call: Call, wanted: Submit) -> None:
    if call.grant.queues is None:
        return
    declared = call.app.jobs.get(wanted.job)
    if declared is not None and not call.grant.reaches(declared.queue):
        raise NotAllowed(
            f"the token is not good for the job {wanted.job!r}",
            "it is good for some queues, and this job's is none of them",
            "use another token",
        )
    if isinstance(wanted.queue, str):
        reached(call, wanted.queue)
    # In a scope of others a key could be taken before they use it, and a job of theirs be replaced.
    if isinstance(wanted.scope, str) or (
        isinstance(wanted.unique, UniqueGiven) and wanted.unique.scope is not None
    ):
        raise NotAllowed(
            "the token is not good for a scope of its own choice",
            "it is good for some queues, and a scope may be that of jobs in others",
            "leave out scope: it is the job's name then",
        )


def unknown_to(call: Call, name: str, error: UnknownJob) -> UnknownJob:
    """The error for a name that is not declared: the names of jobs in queues of others are not told."""
    if call.grant.queues is None:
        return error
    return unknown_job(name, [each for each, job in call.app.jobs.items() if call.grant.reaches(job.queue)])


async def refuse_foreign(call: Call, job_id: str) -> None:
    """An earlier submit had made this job; a caller who may not see it is told that the key is taken, and no more.

    A job that was removed is nobody's any more: who sends the very payload of its key gets the answer of then.

    Raises:
        KeyConflict: it is in a queue of others.
    """
    if call.grant.queues is not None and not await _is_theirs(call, job_id):
        raise _taken()


async def told_conflict(call: Call, error: KeyConflict) -> KeyConflict:
    """A key that belongs to another payload: of whose, only somebody is told who may see that job."""
    if call.grant.queues is None or (error.job_id and await _is_theirs(call, error.job_id, gone=False)):
        return error
    return _taken()


async def _is_theirs(call: Call, job_id: str, *, gone: bool = True) -> bool:
    """`gone`: what is answered of a job that was removed."""
    try:
        record = await call.client.aget(job_id)
    except (JobGone, JobNotFound):
        return gone
    return call.grant.reaches(record.queue)


def _taken() -> KeyConflict:
    return KeyConflict(
        "the key is taken", "it belongs to a job that this token is not good for", "use another key"
    )
