"""Jobs looked at over HTTP: as they stand, their result, their timeline, their log lines; and waited for."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fencerow.core.client.handle import Handle
from fencerow.core.errors import (
    JobCancelled,
    JobFailed,
    JobGone,
    JobNotFound,
    MalformedPayload,
    NotReady,
    PayloadAltered,
    PayloadMissing,
    ResultTimeout,
    SealKeyUnknown,
    StoreUnavailable,
)
from fencerow.core.model.job import JobRecord
from fencerow.web.gateway.route import WAIT_S_MAX, Answer, Call, Route, asked_wait_s
from fencerow.web.gateway.shapes import (
    JobDocument,
    Lines,
    LoggedLine,
    Timeline,
    happened,
    job_document,
    surely,
)
from fencerow.web.reading import headers as read
from fencerow.web.tokens.scope import Scope


class Waiting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether to wait for the job's end."""

    wait: Annotated[
        float,
        Meta(ge=0, le=WAIT_S_MAX, description="wait for so many seconds, or until the job has ended"),
    ] = 0.0


async def look(call: Call) -> Answer:
    """A job as it stands. With `wait` it is answered when the job has ended, or after so long as it stands then."""
    job, wait_s = await call.seen(call.params["id"]), waiting_s(call)
    if wait_s and not job.is_final:
        await call.until_ended(job.id, wait_s)
        job = await _seen_again(call, job)
    return Answer(200, job_document(job), applied(call, wait_s))


async def result(call: Call) -> Answer:
    """What the job's handler returned: its JSON, byte for byte as it was stored."""
    job, wait_s = await call.seen(call.params["id"]), waiting_s(call)
    handle = Handle(call.client, job.id, bytes)
    try:
        if job.is_final or not wait_s:
            found: bytes | None = await handle.aresult(0)
        else:
            found = await call.while_connected(handle.aresult(wait_s))
    except ResultTimeout as error:
        raise NotReady(error.what, error.why, error.fix) from None
    if found is None:
        raise NotReady(f"job {job.id} has not ended", "the gateway is stopping", "ask again")
    return Answer(200, headers=applied(call, wait_s), content=json_of(job.id, found))


async def timeline(call: Call) -> Answer:
    """What happened to a job, in order, with who did it. Tracebacks are told to tokens with the scope `operate`."""
    job = await call.seen(call.params["id"])
    tells = call.grant.may(Scope.OPERATE)
    found = [happened(each, tracebacks=tells) for each in await call.client.atimeline(job.id)]
    return Answer(200, Timeline(id=job.id, happened=found))


async def logs(call: Call) -> Answer:
    """The lines that the job's handler kept with it, in order."""
    job = await call.seen(call.params["id"])
    found = [
        LoggedLine(attempt=each.attempt, at=surely(each.at_us), level=each.level, message=each.message)
        for each in await call.client.alogs(job.id)
    ]
    return Answer(200, Lines(id=job.id, lines=found))


async def _seen_again(call: Call, job: JobRecord) -> JobRecord:
    """The job after the wait. One that has left no row is gone: it was there before.

    Raises:
        JobGone: it is ephemeral and succeeded, or somebody removed it.
    """
    try:
        return await call.seen(job.id)
    except JobNotFound:
        raise JobGone(
            f"job {job.id} is gone",
            "it was removed after its end, or it is ephemeral and succeeded",
            "wait at `/result` for what an ephemeral job returns",
        ) from None


def waiting_s(call: Call) -> float:
    """How long to wait: see `asked_wait_s`."""
    return asked_wait_s(call.query, call.headers)


def applied(call: Call, wait_s: float) -> dict[str, str]:
    """RFC 7240: a preference that was honoured is told."""
    if not wait_s or not read.wait_of(call.headers.get("prefer", ())):
        return {}
    return {"preference-applied": f"wait={wait_s:g}"}


def json_of(job_id: str, stored: bytes) -> bytes:
    """Stored bytes, if they are JSON: something other than a worker may have written them.

    Raises:
        MalformedPayload: they are none.
    """
    try:
        msgspec.json.decode(stored, type=Any)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedPayload(
            f"the stored result of job {job_id} is no JSON",
            str(error),
            "`fencerow jobs show` has what is stored",
        ) from None
    return stored


UNREADABLE = (MalformedPayload, PayloadAltered, PayloadMissing, SealKeyUnknown, StoreUnavailable)
PREFER = {"Prefer": "`wait=30` waits for so many seconds, or until the job has ended"}
ROUTES = (
    Route(
        "GET", "/v1/jobs/{id}", "getJob", look, Scope.READ, {200: JobDocument},
        query=Waiting, refusals=(JobNotFound, JobGone), waits=True, accepts=PREFER,
    ),
    Route(
        "GET", "/v1/jobs/{id}/result", "getResult", result, Scope.READ, {200: None},
        query=Waiting, waits=True, accepts=PREFER,
        refusals=(JobNotFound, JobGone, NotReady, JobFailed, JobCancelled, *UNREADABLE),
    ),
    Route(
        "GET", "/v1/jobs/{id}/timeline", "getTimeline", timeline, Scope.READ, {200: Timeline}, refusals=(JobNotFound,)
    ),
    Route("GET", "/v1/jobs/{id}/logs", "getLogs", logs, Scope.READ, {200: Lines}, refusals=(JobNotFound,)),
)  # fmt: skip
