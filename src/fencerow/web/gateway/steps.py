"""Steps of a job over HTTP: what it remembers and waits for; it goes on from one of them; and signals to it."""

from __future__ import annotations

import msgspec

from fencerow.core.errors import (
    InvalidInput,
    InvalidPayload,
    JobNotFound,
    KeyConflict,
    MalformedPayload,
    OutcomeUnknown,
    PayloadTooLarge,
)
from fencerow.core.model.ids import new_id
from fencerow.db.text import shown
from fencerow.errors import SignalRefused
from fencerow.flows.builder import derived_id
from fencerow.steps.model import Kind, Step
from fencerow.steps.results import unpacked
from fencerow.steps.signals import SignalAnswer
from fencerow.web.gateway.foreign import told_conflict
from fencerow.web.gateway.looking import UNREADABLE
from fencerow.web.gateway.moving import MOVED
from fencerow.web.gateway.problem import missing
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.step_shapes import (
    RevivedFrom,
    ReviveFrom,
    SignalDocument,
    SignalGiven,
    SignalList,
    SignalSent,
    StepDocument,
    StepList,
    StepName,
    StepSummary,
    WaitDocument,
)
from fencerow.web.gateway.telling import each, told
from fencerow.web.reading import headers as read
from fencerow.web.tokens.scope import Scope


class StepQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which step."""

    name: StepName


async def list_steps(call: Call) -> Answer:
    """What a job remembers of its run, in order and without results, and what it waits for now."""
    job = await call.seen(call.params["id"])
    steps, waits = await call.client.asteps(job.id), await call.client.awaits(job.id)
    return Answer(200, StepList(id=job.id, steps=each(StepSummary, steps), waits=each(WaitDocument, waits)))


async def show_step(call: Call) -> Answer:
    """One step that a job remembers, with its result."""
    job, name = await call.seen(call.params["id"]), call.query.name
    found = next((one for one in await call.client.asteps(job.id) if one.name == name), None)
    if found is None:
        raise missing(
            InvalidInput(
                f"job {job.id} remembers no step {shown(name)}", "/steps lists those it remembers", "name one"
            )
        )
    return Answer(200, told(StepDocument, found, result=_result(call, job.id, found)))


async def revive_from(call: Call) -> Answer:
    """Queue a finished job again, which does this step and all behind it anew and remembers those before."""
    job, wanted = await call.seen(call.params["id"]), call.body
    try:
        forgotten = await call.acting.arevive_from(job.id, wanted.step, reason=call.reason)
    except KeyConflict as error:
        raise (await told_conflict(call, error)) from None
    return Answer(200, RevivedFrom(id=job.id, forgotten=forgotten))


async def send_signal(call: Call) -> Answer:
    """Send a signal to a job: its `wait_for` of this name gets the data, once; it is kept until then.

    Under an `Idempotency-Key` it is sent once: a repeat gets the same signal, with `Idempotent-Replayed: true`, and
    another signal under the same key is refused (409).
    """
    job, name = await call.seen(call.params["id"]), call.params["name"]
    key = read.idempotency_key_of(call.headers.get("idempotency-key", ()))
    own = new_id() if key is None else derived_id("signal", job.id, key)
    sent = await call.acting.asignal(job.id, name, call.body.data, signal_id=own)
    headers = {"fencerow-answer": "existing" if sent.replay else "inserted"}
    if sent.replay:
        await _refuse_other(call, sent, name)
        headers["idempotent-replayed"] = "true"
    return Answer(202, told(SignalSent, sent), headers)


async def list_signals(call: Call) -> Answer:
    """The signals that were sent to a job, in order, taken or not. Their data are not shown: they may be secret."""
    job = await call.seen(call.params["id"])
    return Answer(
        200, SignalList(id=job.id, signals=each(SignalDocument, await call.client.asignals(job.id)))
    )


async def _refuse_other(call: Call, sent: SignalAnswer, name: str) -> None:
    """A repeat says what was said before.

    Raises:
        KeyConflict: what was sent under this key before is another signal.
    """
    known = next((one for one in await call.client.asignals(sent.job_id) if one.id == sent.id), None)
    if known is not None and (known.name, known.data) != (name, call.body.data):
        raise KeyConflict(
            f"another signal was sent to job {sent.job_id} under this key",
            "it has another name or other data",
            "use another key",
        )


def _result(call: Call, job_id: str, step: Step) -> object:
    try:
        plain = step.result.encode()
        if step.kind is Kind.STEP:
            plain = unpacked(call.client.packing, job_id, step.name, step.result)
        return msgspec.json.decode(plain)
    except msgspec.DecodeError as error:
        raise MalformedPayload(
            f"the stored result of step {shown(step.name)} is no JSON",
            str(error),
            "`fencerow steps show` has what is stored",
        ) from None


ONCE = {"Idempotency-Key": "one signal of the job under this key; a repeat gets the same answer"}
ROUTES = (
    Route(
        "GET", "/v1/jobs/{id}/steps", "listSteps", list_steps, Scope.READ, {200: StepList}, refusals=(JobNotFound,),
        tag="steps",
    ),
    Route(
        "GET", "/v1/jobs/{id}/steps/show", "getStep", show_step, Scope.READ, {200: StepDocument}, query=StepQuery,
        refusals=(JobNotFound, *UNREADABLE), missing=(InvalidInput,), tag="steps",
    ),
    Route(
        "POST", "/v1/jobs/{id}/revive-from", "reviveJobFrom", revive_from, Scope.OPERATE, {200: RevivedFrom},
        body=ReviveFrom, refusals=(*MOVED, KeyConflict), tag="steps",
    ),
    Route(
        "POST", "/v1/jobs/{id}/signals/{name}", "sendSignal", send_signal, Scope.SIGNAL, {202: SignalSent},
        body=SignalGiven, accepts=ONCE, tag="steps", takes_slashes=True,
        refusals=(*MOVED, KeyConflict, SignalRefused, InvalidPayload, PayloadTooLarge, OutcomeUnknown),
    ),
    Route(
        "GET", "/v1/jobs/{id}/signals", "listSignals", list_signals, Scope.READ, {200: SignalList},
        refusals=(JobNotFound,), tag="steps",
    ),
)  # fmt: skip
