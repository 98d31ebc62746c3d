"""Flows over HTTP: looked at as they stand, their jobs page by page, their result; cancelled and revived.

A token that is good for some queues sees the flows of which all jobs and callbacks are in these, and no others.
"""

from __future__ import annotations

import base64
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from fencerow.core.errors import Busy, InvalidInput, MalformedPayload, NotReady, OutcomeUnknown, ResultTimeout
from fencerow.core.model.ids import parse_id
from fencerow.core.model.state import FINAL
from fencerow.errors import FlowEnded, FlowNotFound, NoFlowResult, UnknownFlowJob
from fencerow.flows.handle import FlowHandle
from fencerow.flows.looking import (
    FlowJobRecord,
    FlowPlace,
    FlowRecord,
    count_flow_jobs,
    read_flow_callbacks,
    read_flow_jobs,
)
from fencerow.flows.reach import flow_reach
from fencerow.flows.reading import flow_not_found, reading_flow_job
from fencerow.web.gateway.flow_given import ROUTES as GIVEN_ROUTES
from fencerow.web.gateway.flow_shapes import (
    CallbackDocument,
    FlowCancelled,
    FlowCountsDocument,
    FlowDocument,
    FlowJobDocument,
    FlowJobList,
    FlowList,
    FlowName,
    FlowRevived,
    FlowSummary,
)
from fencerow.web.gateway.looking import PREFER, UNREADABLE, Waiting, waiting_s
from fencerow.web.gateway.problem import missing
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import error_document
from fencerow.web.gateway.telling import each, told
from fencerow.web.tokens.scope import Scope

LIMIT_MAX = 200
JOBS_MAX = 1_000


class FlowsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which flows: those that fit all that is given."""

    live: Annotated[bool, Meta(description="only those that have not ended")] = False
    name: FlowName | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 50
    cursor: Annotated[str, Meta(description="`next` of the page before", max_length=200)] | None = None


class FlowJobsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs of the flow."""

    limit: Annotated[int, Meta(ge=1, le=JOBS_MAX)] = 100
    cursor: Annotated[str, Meta(description="`next` of the page before", pattern="^[0-9]{1,7}$")] | None = (
        None
    )


class FlowResultWanted(Waiting, frozen=True):
    """Which stage's end to wait for, and how long."""

    wait_for: Annotated[FlowName, Meta(description="wait for the end of this stage first")] | None = None


async def list_flows(call: Call) -> Answer:
    """The newest flows that fit. A page says in `next`, and in `Link`, where the next one begins.

    A token that is good for some queues sees the flows of which all jobs and callbacks are in these.
    """
    wanted: FlowsWanted = call.query
    before = None if wanted.cursor is None else place_of(wanted.cursor)
    found = await call.client.flows.aknown(
        live=wanted.live,
        name=wanted.name,
        queues=call.grant.queues,
        before=before,
        limit=wanted.limit + 1,
    )
    shown = found[: wanted.limit]
    following = cursor_of(shown[-1]) if len(found) > len(shown) else None
    document = FlowList(flows=[told(FlowSummary, one, state=one.state) for one in shown], next=following)
    fields: dict[str, Any] = {
        "live": "true" if wanted.live else None,
        "name": wanted.name,
        "limit": wanted.limit,
    }
    return Answer(200, document, _linked(call, "/v1/flows", following, fields))


async def show_flow(call: Call) -> Answer:
    """A flow as it stands. With `wait` it is answered when all its jobs have ended, or after so long."""
    handle, wait_s = await _seen(call), waiting_s(call)
    if wait_s:
        try:
            await call.while_connected(handle.await_ended(wait_s))
        except ResultTimeout:
            pass  # it is answered as it stands
    found = await handle.arefresh()
    engine = call.client.engine
    counts = await engine.arun(count_flow_jobs(found.id))
    callbacks = await engine.arun(read_flow_callbacks(found.id))
    document = told(
        FlowDocument,
        found,
        state=found.state,
        counts=told(FlowCountsDocument, counts),
        callbacks=each(CallbackDocument, callbacks),
    )
    return Answer(200, document)


async def list_flow_jobs(call: Call) -> Answer:
    """The jobs of a flow, each behind those that it waits for, with how they stand and for whom they wait."""
    handle, wanted = await _seen(call), call.query
    behind = -1 if wanted.cursor is None else int(wanted.cursor)
    found = await call.client.engine.arun(read_flow_jobs(handle.id, after=behind, limit=wanted.limit + 1))
    shown = found[: wanted.limit]
    following = str(shown[-1].place) if len(found) > len(shown) else None
    headers = _linked(call, f"/v1/flows/{handle.id}/jobs", following, {"limit": wanted.limit})
    return Answer(200, FlowJobList(jobs=list(map(_job, shown)), next=following), headers)


async def flow_result(call: Call) -> Answer:
    """The newest result of a flow's stages. With `wait_for` and `wait` first the end of that stage is waited for: if it
    fails, or does not end in time, it is the result of the stage before it. `Fencerow-Stage` says how that one stands.
    """
    handle, wait_s, wait_for = await _seen(call), waiting_s(call), call.query.wait_for
    try:
        found = await call.while_connected(_result(handle, wait_for, wait_s))
        if found is None:
            raise NotReady(f"flow {handle.id} was waited for", "the gateway is stopping", "ask again")
        stage = None if wait_for is None else await call.client.arun(reading_flow_job(handle.id, wait_for))
        if stage is not None and stage.state in FINAL:  # it may have ended just now
            found = await _result(handle, wait_for, 0)
    except UnknownFlowJob as error:
        raise missing(error) from None
    return Answer(200, headers={} if stage is None else {"fencerow-stage": stage.state.value}, content=found)


async def cancel_flow(call: Call) -> Answer:
    """Cancel all jobs of a flow that have not ended: 200 when none runs any more, 202 when some were asked to stop.

    It goes in portions; repeat it if it was interrupted.
    """
    handle = await _seen(call)
    done = await call.acting.flows.handle(handle.id).acancel(reason=call.reason)
    return Answer(202 if done.asked else 200, told(FlowCancelled, done, id=handle.id))


async def revive_flow(call: Call) -> Answer:
    """Run all jobs of a flow again that failed or were cancelled; each waits again for those it had waited for.

    It goes in portions, those in front first; repeat it if it was interrupted, or if some were `left`.
    """
    handle = await _seen(call)
    done = await call.acting.flows.handle(handle.id).arevive(reason=call.reason)
    return Answer(200, told(FlowRevived, done, id=handle.id))


async def _seen(call: Call) -> FlowHandle:
    """The flow of this id, if all of its jobs and callbacks are in queues of this caller.

    Raises:
        FlowNotFound: it is not there, or not for this caller. The two look alike.
    """
    handle = call.client.flows.handle(call.params["id"])
    await handle.arefresh()
    queues = call.grant.queues
    if queues is None or await call.client.engine.arun(flow_reach(handle.id)) <= queues:
        return handle
    raise flow_not_found(handle.id)


async def _result(handle: FlowHandle, wait_for: str | None, wait_s: float) -> bytes:
    try:
        return msgspec.json.encode(await handle.aresult(wait_for=wait_for, timeout_s=wait_s))
    except msgspec.DecodeError as error:
        raise MalformedPayload(
            f"the stored result of flow {handle.id} is no JSON", str(error), "look at its jobs"
        ) from None


def _job(found: FlowJobRecord) -> FlowJobDocument:
    error = None if found.error_text is None else msgspec.json.decode(found.error_text)
    return told(FlowJobDocument, found, error=error_document(error))


def cursor_of(last: FlowRecord) -> str:
    """Where the page after this flow begins, as callers carry it."""
    return base64.urlsafe_b64encode(f"{last.submitted_at_us}:{last.id}".encode()).decode().rstrip("=")


def place_of(cursor: str) -> FlowPlace:
    """The flow after which a page begins.

    Raises:
        InvalidInput: no page said so.
    """
    try:
        text = base64.b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}", b"-_", validate=True).decode()
        at_us, _, flow_id = text.partition(":")
        if not (at_us.isascii() and at_us.isdecimal() and len(at_us) <= 18):
            raise ValueError(at_us)
        return FlowPlace(int(at_us), parse_id(flow_id))
    except (ValueError, InvalidInput):
        raise InvalidInput(
            f"cursor is {ascii(cursor)[:60]}", "no page ends there", "take `next` of a page, or none"
        ) from None


def _linked(call: Call, path: str, following: str | None, fields: dict[str, Any]) -> dict[str, str]:
    if following is None:
        return {}
    given = {name: value for name, value in {**fields, "cursor": following}.items() if value is not None}
    return {"link": f'<{call.base}{path}?{urlencode(given)}>; rel="next"'}


MOVED = (FlowNotFound, FlowEnded, Busy, OutcomeUnknown)
ROUTES = (
    *GIVEN_ROUTES,
    Route("GET", "/v1/flows", "listFlows", list_flows, Scope.READ, {200: FlowList}, query=FlowsWanted, tag="flows"),
    Route(
        "GET", "/v1/flows/{id}", "getFlow", show_flow, Scope.READ, {200: FlowDocument},
        query=Waiting, refusals=(FlowNotFound,), waits=True, accepts=PREFER, tag="flows",
    ),
    Route(
        "GET", "/v1/flows/{id}/jobs", "listFlowJobs", list_flow_jobs, Scope.READ, {200: FlowJobList},
        query=FlowJobsWanted, refusals=(FlowNotFound,), tag="flows",
    ),
    Route(
        "GET", "/v1/flows/{id}/result", "getFlowResult", flow_result, Scope.READ, {200: None},
        query=FlowResultWanted, refusals=(FlowNotFound, NotReady, NoFlowResult, *UNREADABLE),
        missing=(UnknownFlowJob,), waits=True, accepts=PREFER, tag="flows",
    ),
    Route(
        "DELETE", "/v1/flows/{id}", "cancelFlow", cancel_flow, Scope.CANCEL, {200: FlowCancelled, 202: FlowCancelled},
        refusals=MOVED, tag="flows",
    ),
    Route(
        "POST", "/v1/flows/{id}/revive", "reviveFlow", revive_flow, Scope.OPERATE, {200: FlowRevived},
        refusals=MOVED, tag="flows",
    ),
)  # fmt: skip
