"""Jobs over HTTP: submit one, look at it, wait for it, take its result, cancel it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fencerow.core.client.refs import CancelAnswer
from fencerow.core.errors import (
    InvalidArguments,
    JobCancelled,
    JobFailed,
    JobNotFound,
    KeyConflict,
    NotReady,
    OutcomeUnknown,
    PayloadTooLarge,
    UnknownJob,
)
from fencerow.core.model.job import JobRecord
from fencerow.web.errors import NotAllowed
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, JobDocument, Told, job_document
from fencerow.web.reading import headers as read
from fencerow.web.tokens.scope import Scope

WAIT_S_MAX = 60.0
Wait = Annotated[
    float, Meta(ge=0, le=WAIT_S_MAX, description="wait for so many seconds, or until the job has ended")
]


class Submit(Given):
    """A job to be done. What is left out is as the job declares it; docs/guide.md has what each option means."""

    job: Annotated[str, Meta(min_length=1, max_length=200)]
    args: dict[str, Any] = {}
    id: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    delay_s: float | UnsetType = UNSET
    run_at: datetime | UnsetType = UNSET
    attempts_max: int | UnsetType = UNSET
    timeout_s: float | UnsetType = UNSET
    expires_s: float | UnsetType = UNSET
    retention_s: float | UnsetType = UNSET
    ephemeral: bool | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    key_lifetime_s: float | UnsetType = UNSET
    exclusive: str | UnsetType = UNSET
    limits: list[str] | UnsetType = UNSET
    share: str | UnsetType = UNSET
    affinity: str | UnsetType = UNSET
    affinity_wait_s: float | UnsetType = UNSET
    unique: str | UnsetType = UNSET
    tags: list[str] = []
    metadata: dict[str, Any] = {}


class Submitted(Told):
    """The job that the submit came to. A repeat under the same key is answered in the same words."""

    id: str
    job: str
    url: str


class Waiting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether to wait for the job's end."""

    wait: Wait = 0.0


class Cancelling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs to leave alone."""

    only: Annotated[str, Meta(pattern="^queued$")] | None = None


class Cancelled(Told):
    """What the cancel did: `cancelled`, it never runs again; `requested`, its worker was asked to stop it."""

    id: str
    answer: str


async def submit(call: Call) -> Answer:
    """Store a job. It is answered when the job is stored, never before.

    Under an `Idempotency-Key` a repeat gets the same answer, with `Idempotent-Replayed: true`, as long as the key lives.
    """
    wanted: Submit = call.body
    key = read.idempotency_key_of(call.headers.get("idempotency-key", ()))
    _refuse_unreached(call, wanted)
    handle = await call.app.asubmit_by_name(wanted.job, wanted.args, **_options(call, wanted, key))
    if handle.replay:
        await _refuse_foreign(call, handle.id, key)
    url = f"{call.base}/v1/jobs/{handle.id}"
    headers = {"location": url} | ({"idempotent-replayed": "true"} if handle.replay else {})
    return Answer(202, Submitted(id=handle.id, job=wanted.job, url=url), headers)


def _refuse_unreached(call: Call, wanted: Submit) -> None:
    """A token that is good for some queues submits to these alone; a job that is not declared here has no queue yet."""
    declared = call.app.jobs.get(wanted.job)
    queue = wanted.queue if isinstance(wanted.queue, str) else declared.queue if declared else None
    if queue is not None and not call.grant.reaches(queue):
        raise NotAllowed(
            f"the token is not good for queue {queue!r}",
            "it names the queues that it is good for",
            "use another",
        )


async def _refuse_foreign(call: Call, job_id: str, key: str | None) -> None:
    """A key that another caller used in a queue that is not this one's: that it is taken is all that is told."""
    if call.grant.queues is None:
        return
    try:
        await call.seen(job_id)
    except JobNotFound:
        raise KeyConflict(
            f"the key {key!r} is taken", "it belongs to another payload", "use another key"
        ) from None


def _options(call: Call, wanted: Submit, key: str | None) -> dict[str, Any]:
    """The options of `using`, of which a caller gives what they like."""
    given = {
        name: value
        for name in wanted.__struct_fields__
        if name not in ("job", "args") and (value := getattr(wanted, name)) is not UNSET
    }
    return {**given, "key": key, "headers": carried(call)}


def carried(call: Call) -> Mapping[str, str]:
    """What goes with the job, so that its worker's log and traces can be found from the request."""
    origin = call.origin
    found = {"correlation-id": origin.correlation_id}
    if origin.traceparent is not None:
        found["traceparent"] = origin.traceparent
        if origin.tracestate:
            found["tracestate"] = origin.tracestate
    return found


async def look(call: Call) -> Answer:
    """A job as it stands. With `wait` it is answered when the job has ended, or after so long as it stands then."""
    return Answer(200, job_document(await _waited(call)))


async def result(call: Call) -> Answer:
    """What the job's handler returned: its JSON, as it was stored."""
    job = await _waited(call)
    value = await call.client.handle(job.id).aresult(0)
    return Answer(200, value)


async def _waited(call: Call) -> JobRecord:
    """The job, when it has ended or the caller's time is over."""
    job = await call.seen(call.params["id"])
    wait_s = min(max(call.query.wait, read.wait_of(call.headers.get("prefer", ()))), WAIT_S_MAX)
    if job.is_final or wait_s <= 0:
        return job
    await call.until_ended(job.id, wait_s)
    return await call.seen(job.id)


async def cancel(call: Call) -> Answer:
    """Cancel a job: 200 when it never runs again, 202 when it runs and its worker was asked to stop it."""
    job = await call.seen(call.params["id"])
    answer = await call.acting.acancel(job.id, reason=call.reason, only_queued=call.query.only == "queued")
    status = 200 if answer is CancelAnswer.CANCELLED else 202
    return Answer(status, Cancelled(id=job.id, answer=answer.value))


ROUTES = (
    Route(
        "POST", "/v1/jobs", "submitJob", submit, Scope.SUBMIT, {202: Submitted},
        body=Submit,
        refusals=(UnknownJob, InvalidArguments, KeyConflict, PayloadTooLarge, OutcomeUnknown),
        accepts={"Idempotency-Key": "one job under this key; a repeat gets the same answer"},
    ),
    Route(
        "GET", "/v1/jobs/{id}", "getJob", look, Scope.READ, {200: JobDocument},
        query=Waiting, refusals=(JobNotFound,), waits=True,
        accepts={"Prefer": "`wait=30` waits for so many seconds, or until the job has ended"},
    ),
    Route(
        "GET", "/v1/jobs/{id}/result", "getResult", result, Scope.READ, {200: None},
        query=Waiting, refusals=(JobNotFound, NotReady, JobFailed, JobCancelled), waits=True,
    ),
    Route(
        "DELETE", "/v1/jobs/{id}", "cancelJob", cancel, Scope.CANCEL, {200: Cancelled, 202: Cancelled},
        query=Cancelling, refusals=(JobNotFound,),
    ),
)  # fmt: skip
