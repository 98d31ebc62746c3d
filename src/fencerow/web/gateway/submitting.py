"""Jobs submitted over HTTP: one, several together, or none but checked as if."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

import fencerow.web.gateway.in_place as in_place
from fencerow.core.app import Call as JobCall
from fencerow.core.app.calls import CHUNK_BYTES
from fencerow.core.app.submitter import Submitter
from fencerow.core.client.handle import Handle
from fencerow.core.client.refs import Key
from fencerow.core.errors import (
    FencerowError,
    InvalidArguments,
    InvalidInput,
    InvalidPayload,
    JobNotFound,
    KeyConflict,
    OlderWorkers,
    OutcomeUnknown,
    PayloadTooLarge,
    RowRefused,
    StoreUnavailable,
    UnknownJob,
)
from fencerow.limits.errors import UnknownLimit
from fencerow.web.gateway.foreign import job_call, refuse_foreign, told_conflict
from fencerow.web.gateway.given import Batch, Submit
from fencerow.web.gateway.looking import PREFER, Waiting, applied, waiting_s
from fencerow.web.gateway.problem import placed
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import ErrorDocument, FinalState, SubmitAnswer, Told
from fencerow.web.reading import headers as read
from fencerow.web.tokens.scope import Scope


class Submitted(Told, frozen=True):
    """The job that the submit came to. A repeat under the same key is answered in the same words.

    Who asked to wait is told more: `state`, with `result` or `error`, of a job that has ended in time (200), and
    `result_url` of one that goes on (202).
    """

    id: str
    job: str
    url: str
    result_url: (
        Annotated[
            str, Meta(description="of who asked to wait: here the result is waited for, again and again")
        ]
        | UnsetType
    ) = UNSET
    state: Annotated[FinalState, Meta(description="of a job that has ended in time")] | UnsetType = UNSET
    result: (
        Annotated[msgspec.Raw, Meta(description="of one that has succeeded: JSON, byte for byte as stored")]
        | UnsetType
    ) = UNSET
    error: ErrorDocument | UnsetType = UNSET


class OneOfBatch(Told, frozen=True):
    """The job that one submit of a batch came to; `answer`: whether it was stored now."""

    id: str
    job: str
    url: str
    answer: SubmitAnswer


class Together(Told, frozen=True):
    """The jobs of a batch, in the order of its submits."""

    jobs: list[OneOfBatch]


class Checked(Told, frozen=True):
    """What would be stored. A submit may still be refused for what only the database knows, such as a key."""

    job: str
    queue: str
    priority: int
    args_bytes: int


async def submit(call: Call) -> Answer:
    """Store a job. It is answered when the job is stored, never before.

    Under an `Idempotency-Key` a repeat with the same job and arguments gets the same answer, with
    `Idempotent-Replayed: true`, as long as the key lives, also when the job has ended or was removed. The header
    `Fencerow-Answer` says what came of it: `inserted`, `existing`, or `replaced` under a unique key.

    With `Prefer: wait=N` or `?wait=N` it is answered 200 with the end of the job, if it ends within N seconds of the
    request; else 202, and `result_url` waits on. This needs a token with the scope `read`, too.
    """
    until = in_place.until(call)
    prepared = job_call(call, _under_its_key(call))
    try:
        handle = await call.submits.asubmit(prepared)
    except KeyConflict as error:
        raise (await told_conflict(call, error)) from None
    if handle.replay:
        await refuse_foreign(call, handle.id)
    url = _address(call, handle)
    headers = {"location": url, "fencerow-answer": handle.answer}
    if handle.answer == "existing":
        headers["idempotent-replayed"] = "true"
    if until is None:
        return Answer(202, Submitted(id=handle.id, job=call.body.job, url=url), headers)
    headers |= applied(call, waiting_s(call))
    if (end := await in_place.end_by(call, handle.id, until)) is not None:
        return Answer(200, Submitted(id=handle.id, job=call.body.job, url=url, **end), headers)
    later = Submitted(
        id=handle.id, job=call.body.job, url=url, result_url=f"{url}/result?wait={in_place.AGAIN_S}"
    )
    return Answer(202, later, headers | {"retry-after": in_place.RETRY_AFTER_S})


async def submit_batch(call: Call) -> Answer:
    """Store several jobs in one transaction, all or none, and answer for each in its order.

    Each may have an idempotency key of its own in `key`. If one is refused, `where` says which, and none is stored.
    """
    if call.headers.get("idempotency-key"):
        raise InvalidInput(
            "a batch was sent with Idempotency-Key",
            "each of its submits has a key of its own",
            "send `key` with each submit",
        )
    wanted: Batch = call.body
    submits = call.submits
    prepared = [_of_batch(call, submits, each, number) for number, each in enumerate(wanted.jobs)]
    _refuse_large(prepared)
    await _refuse_taken(call, wanted.jobs)
    try:
        handles = await submits.asubmit_many(prepared)
    except KeyConflict as error:
        raise (await told_conflict(call, error)) from None
    told = [
        OneOfBatch(id=handle.id, job=each.job, url=_address(call, handle), answer=handle.answer)
        for each, handle in zip(wanted.jobs, handles, strict=True)
    ]
    return Answer(202, Together(jobs=told))


async def validate(call: Call) -> Answer:
    """Check a job as a submit does, by its declaration and by what the token may, and store nothing."""
    job = call.submits.as_stored(job_call(call, _under_its_key(call)))
    template = job.template
    return Answer(
        200,
        Checked(
            job=template.name, queue=template.queue, priority=template.priority, args_bytes=job.args_bytes
        ),
    )


def _under_its_key(call: Call) -> Submit:
    """What the caller sent, with the key of the header, which is the usual place for it.

    Raises:
        InvalidInput: header and body name two keys.
    """
    wanted: Submit = call.body
    key = read.idempotency_key_of(call.headers.get("idempotency-key", ()))
    if key is None:
        return wanted
    if wanted.key is not UNSET and wanted.key != key:
        raise InvalidInput(
            "the body has another key than the header Idempotency-Key", "a job has one", "send one of them"
        )
    return msgspec.structs.replace(wanted, key=key)


def _of_batch(call: Call, submits: Submitter, wanted: Submit, number: int) -> JobCall[object]:
    """One call of a batch, checked to its end, so that a refusal can say which it is."""
    try:
        prepared = job_call(call, wanted)
        submits.as_stored(prepared)
        return prepared
    except FencerowError as error:
        raise placed(error, f"$.jobs[{number}]") from None


def _refuse_large(prepared: Sequence[JobCall[object]]) -> None:
    """More than this would be stored in several transactions."""
    size = sum(len(each.args) for each in prepared)
    if size > CHUNK_BYTES:
        raise PayloadTooLarge(
            f"the arguments of the batch take {size} bytes",
            f"at most {CHUNK_BYTES} are stored together",
            "send smaller batches",
        )


async def _refuse_taken(call: Call, jobs: Sequence[Submit]) -> None:
    """A key of others is refused before anything is stored. Whoever takes one in between is told an id, which says
    nothing to who may not see its job."""
    if call.grant.queues is None:
        return
    for number, each in enumerate(jobs):
        if isinstance(each.key, str):
            try:
                owner = await call.client.aget(Key(each.job, each.key))
                await refuse_foreign(call, owner.id)
            except KeyConflict as error:
                raise placed(error, f"$.jobs[{number}]") from None
            except JobNotFound:
                continue


def _address(call: Call, handle: Handle[object]) -> str:
    return f"{call.base}/v1/jobs/{handle.id}"


CHECKED = (UnknownJob, InvalidArguments, InvalidPayload, PayloadTooLarge)
STORED = (*CHECKED, KeyConflict, RowRefused, UnknownLimit, OutcomeUnknown, OlderWorkers, StoreUnavailable)
KEY = {"Idempotency-Key": "one job under this key; a repeat gets the same answer"}
TRACE = {
    "traceparent": "the trace that the job belongs to, by W3C Trace Context",
    "tracestate": "what goes with it",
    "X-Correlation-Id": "goes with the job into its headers; by default the request's id",
}
ROUTES = (
    Route(
        "POST", "/v1/jobs", "submitJob", submit, Scope.SUBMIT, {200: Submitted, 202: Submitted},
        query=Waiting, body=Submit, refusals=STORED, may_wait=True, accepts={**KEY, **TRACE, **PREFER},
    ),
    Route(
        "POST", "/v1/jobs:batch", "submitJobs", submit_batch, Scope.SUBMIT, {202: Together},
        body=Batch, refusals=STORED, accepts=TRACE,
    ),
    Route(
        "POST", "/v1/jobs:validate", "validateJob", validate, Scope.SUBMIT, {200: Checked},
        body=Submit, refusals=CHECKED, accepts=KEY,
    ),
)  # fmt: skip
