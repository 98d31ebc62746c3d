"""Flows submitted over HTTP: all jobs of one document with who waits for whom, stored whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fencerow.core.app import Call as JobCall
from fencerow.core.errors import FencerowError, InvalidInput, OlderWorkers, OutcomeUnknown
from fencerow.errors import (
    FlowConflict,
    FlowCycle,
    FlowNameTaken,
    FlowTooLarge,
    InvalidFlow,
    UnknownFlowJob,
    UnknownLimit,
)
from fencerow.flows.builder import CALLBACKS_MAX, Flow, derived_id
from fencerow.flows.graph import JOBS_MAX
from fencerow.web.gateway.flow_shapes import FlowName, FlowSubmitted
from fencerow.web.gateway.foreign import job_call
from fencerow.web.gateway.given import Submit
from fencerow.web.gateway.problem import placed
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given
from fencerow.web.gateway.submitting import CHECKED, TRACE
from fencerow.web.reading import headers as read
from fencerow.web.tokens.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

Names = Annotated[list[FlowName], Meta(max_length=JOBS_MAX)]
Callbacks = Annotated[list[Submit], Meta(max_length=CALLBACKS_MAX)]


class FlowMember(Submit, frozen=True, kw_only=True):
    """A job of a flow, under a name of its own there. `needs`: these must succeed before it starts; `after`: these may
    end in any way. `stage`: its result is that of the flow, until a later stage has one."""

    name: FlowName
    needs: Names = msgspec.field(default_factory=list)
    after: Names = msgspec.field(default_factory=list)
    stage: bool = False


class FlowGiven(Given, frozen=True):
    """Jobs of which some wait for others. `on_done` is made when all have ended, `on_succeeded` when all have
    succeeded, `on_failed` as soon as one has failed. No job of a flow has `id`, `key` or `unique`."""

    name: FlowName
    jobs: Annotated[list[FlowMember], Meta(min_length=1, max_length=JOBS_MAX)]
    key: Annotated[str, Meta(description="the idempotency key, where no header gives it")] | UnsetType = UNSET
    on_done: Callbacks = msgspec.field(default_factory=list)
    on_succeeded: Callbacks = msgspec.field(default_factory=list)
    on_failed: Callbacks = msgspec.field(default_factory=list)


async def submit_flow(call: Call) -> Answer:
    """Store a flow, all of it or nothing. It is answered when it is stored, never before.

    Under an `Idempotency-Key` flows of one name are one flow: a repeat gets the same answer, with
    `Idempotent-Replayed: true`, as long as the flow is kept. Another flow under its key is refused (409).
    """
    wanted: FlowGiven = call.body
    handle = await _built(call, wanted).asubmit()
    url = f"{call.base}/v1/flows/{handle.id}"
    headers = {"location": url, "fencerow-answer": "existing" if handle.replay else "inserted"}
    if handle.replay:
        headers["idempotent-replayed"] = "true"
    return Answer(202, FlowSubmitted(id=handle.id, name=wanted.name, jobs=len(wanted.jobs), url=url), headers)


def _built(call: Call, wanted: FlowGiven) -> Flow:
    """The flow, put together from what the caller sent and may submit.

    Raises:
        InvalidInput: a part cannot be used; the place of it is told. NotAllowed: a queue is not theirs.
    """
    flow = Flow(call.acting, call.submits, wanted.name, key=_key(call, wanted))
    for number, each in enumerate(wanted.jobs):
        with _at(f"$.jobs[{number}]"):
            flow.add(each.name, _call(call, each), needs=each.needs, after=each.after, stage=each.stage)
    made: Iterable[tuple[str, Sequence[Submit], Callable[[JobCall[Any]], None]]] = (
        ("on_done", wanted.on_done, flow.on_done),
        ("on_succeeded", wanted.on_succeeded, flow.on_succeeded),
        ("on_failed", wanted.on_failed, flow.on_failed),
    )
    for name, given, call_back in made:
        for number, wanted_then in enumerate(given):
            with _at(f"$.{name}[{number}]"):
                call_back(_call(call, wanted_then))
    return flow


def _call(call: Call, wanted: Submit) -> JobCall[object]:
    """The call of one job, checked to its end, so that a refusal can say which it is."""
    prepared = job_call(call, wanted)
    call.submits.as_stored(prepared)
    return prepared


def _key(call: Call, wanted: FlowGiven) -> str | None:
    """The key. Tokens that are good for some queues have keys of their own, so that they take none of others.

    Raises:
        InvalidInput: header and body name two keys.
    """
    key = read.idempotency_key_of(call.headers.get("idempotency-key", ()))
    if wanted.key is not UNSET and key not in (None, wanted.key):
        raise InvalidInput(
            "the body has another key than the header Idempotency-Key", "a flow has one", "send one of them"
        )
    found = key if wanted.key is UNSET else wanted.key
    queues = call.grant.queues
    return found if found is None or queues is None else derived_id(*sorted(queues), found)


@contextmanager
def _at(where: str) -> Iterator[None]:
    try:
        yield
    except FencerowError as error:
        raise placed(error, where) from None


INVALID = (InvalidFlow, FlowCycle, FlowNameTaken, FlowTooLarge, UnknownFlowJob)
ROUTES = (
    Route(
        "POST", "/v1/flows", "submitFlow", submit_flow, Scope.SUBMIT, {202: FlowSubmitted}, body=FlowGiven,
        refusals=(*CHECKED, *INVALID, FlowConflict, UnknownLimit, OutcomeUnknown, OlderWorkers),
        accepts={"Idempotency-Key": "one flow of this name under this key; a repeat gets the same answer", **TRACE},
        tag="flows",
    ),
)  # fmt: skip
