"""Workers over HTTP: who is registered, what each holds; pause one, let it go on, let it end."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fencerow.core.errors import OrderRefused, WorkerGone, WorkerNotFound
from fencerow.core.model.state import WorkerState
from fencerow.core.model.wanted import LEAVE_S_MAX
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store.orders import Order
from fencerow.web.gateway.queues import Reason
from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.gateway.telling import each, told
from fencerow.web.gateway.turns import Shown
from fencerow.web.tokens.scope import Scope

Which = Annotated[
    str,
    Meta(min_length=1, max_length=300, description="an id or its beginning, or a name; one worker is meant"),
]
State = Literal["alive", "retired", "dead"]


class WorkerDocument(Told, frozen=True, kw_only=True):
    """A registration: what it serves, what is wanted of it, and what it said of itself at its last renewal.

    `running` and `waiting` are null of one that does not say, or has ended. The insides of `info`, `stated` and
    `wanted` are for people.
    """

    id: str
    state: State
    name: str
    host: str
    pid: int
    lease_s: float
    registered_at: Instant
    renewed_at: Instant
    lease_until: Instant
    now: Instant
    ended_at: Instant | None
    info: Any
    stated: dict[str, Any] | None
    wanted: dict[str, Any] | None
    wanted_version: int
    wanted_at: Instant | None
    wanted_by: str | None
    wanted_reason: str | None
    labels: list[str]
    queues: list[str] | None
    slots: int | None
    running: int | None
    waiting: int | None


class WorkerList(Told, frozen=True, kw_only=True):
    """Registrations, the newest first."""

    workers: list[WorkerDocument]


class HeldJob(Told, frozen=True, kw_only=True):
    """A job that a worker holds: it runs, or waits there for a slot."""

    id: str
    name: str
    queue: str
    attempt: int
    priority: int
    claimed_at: Instant
    cancel_requested: bool


class WorkerHolding(Told, frozen=True, kw_only=True):
    """A worker, and the jobs that it holds, the oldest claim first."""

    worker: WorkerDocument
    jobs: list[HeldJob]


class WorkersQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which registrations; by default those that are alive."""

    state: State | Literal["all"] = "alive"
    limit: Shown = 100


class WorkerQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which worker, and how many of its jobs."""

    worker: Which
    jobs: Shown = 50


class OrderWorker(Given, frozen=True, kw_only=True):
    """Which worker, and why."""

    worker: Which
    reason: Reason | None = None


class DrainWorker(Given, frozen=True, kw_only=True):
    """Which worker, why, and after how many seconds what still runs is released; null is the worker's own limit."""

    worker: Which
    reason: Reason | None = None
    within_s: Annotated[float, Meta(ge=0, le=LEAVE_S_MAX)] | None = None


class OrderDocument(Told, frozen=True, kw_only=True):
    """The order that holds now. `given`: this has changed it. The worker carries it out at its next renewal."""

    id: str
    name: str
    version: int
    wanted: dict[str, Any]
    given: bool


async def list_workers(call: Call) -> Answer:
    """Registered workers, the newest first: what they serve, run and said last."""
    everywhere(call, "workers")
    wanted = None if call.query.state == "all" else call.query.state
    found = await call.client.workers.aregistered(state=wanted, limit=call.query.limit)
    return Answer(200, WorkerList(workers=[_document(worker) for worker in found]))


async def show_worker(call: Call) -> Answer:
    """A worker: its order, what it does now, and each job that it holds."""
    everywhere(call, "workers")
    found = await call.client.workers.ainspect(call.query.worker, jobs_max=call.query.jobs)
    return Answer(200, WorkerHolding(worker=_document(found.worker), jobs=each(HeldJob, found.jobs)))


async def pause(call: Call) -> Answer:
    """Let a worker claim nothing until it is resumed. Running jobs go on. It may be repeated."""
    return await _paused(call, paused=True)


async def resume(call: Call) -> Answer:
    """Let a paused worker claim jobs again. It may be repeated."""
    return await _paused(call, paused=False)


async def drain(call: Call) -> Answer:
    """Let a worker finish its running jobs and end. It cannot be taken back; it can be made to end sooner."""
    everywhere(call, "workers")
    wanted: DrainWorker = call.body
    order = await call.acting.workers.adrain(wanted.worker, within_s=wanted.within_s, reason=wanted.reason)
    return Answer(200, _order(order))


async def _paused(call: Call, *, paused: bool) -> Answer:
    everywhere(call, "workers")
    wanted: OrderWorker = call.body
    order = await call.acting.workers.achange(wanted.worker, paused=paused, reason=wanted.reason)
    return Answer(200, _order(order))


def _order(order: Order) -> OrderDocument:
    return told(OrderDocument, order, id=order.holder)


def _document(worker: WorkerRecord) -> WorkerDocument:
    says = worker.stated if worker.state == WorkerState.ALIVE else None
    return told(
        WorkerDocument,
        worker,
        labels=sorted(worker.labels),
        queues=None if worker.queues is None else sorted(worker.queues),
        slots=worker.slots,
        running=None if says is None else sum(group.running for group in says.slot_groups),
        waiting=None if says is None else sum(group.waiting for group in says.slot_groups),
    )


REFUSED = (WorkerNotFound, WorkerGone, OrderRefused)
ROUTES = (
    Route(
        "GET", "/v1/workers", "listWorkers", list_workers, Scope.READ, {200: WorkerList},
        query=WorkersQuery, tag="workers",
    ),
    Route(
        "GET", "/v1/workers/show", "showWorker", show_worker, Scope.READ, {200: WorkerHolding},
        query=WorkerQuery, refusals=(WorkerNotFound,), tag="workers",
    ),
    Route(
        "POST", "/v1/workers/pause", "pauseWorker", pause, Scope.OPERATE, {200: OrderDocument},
        body=OrderWorker, refusals=REFUSED, tag="workers",
    ),
    Route(
        "POST", "/v1/workers/resume", "resumeWorker", resume, Scope.OPERATE, {200: OrderDocument},
        body=OrderWorker, refusals=REFUSED, tag="workers",
    ),
    Route(
        "POST", "/v1/workers/drain", "drainWorker", drain, Scope.OPERATE, {200: OrderDocument},
        body=DrainWorker, refusals=REFUSED, tag="workers",
    ),
)  # fmt: skip
