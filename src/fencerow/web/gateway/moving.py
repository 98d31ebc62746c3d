"""Jobs moved over HTTP: cancelled, revived, changed, made due, removed. Each answers by what the guarded move did."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fencerow.command.times import iso
from fencerow.core.client.refs import CancelAnswer
from fencerow.core.errors import (
    Busy,
    IllegalMove,
    InvalidArguments,
    InvalidPayload,
    JobGone,
    JobNotFound,
    KeyConflict,
    OutcomeUnknown,
    PayloadTooLarge,
    StoreUnavailable,
    UnknownJob,
)
from fencerow.core.model.change import JobChanged
from fencerow.web.gateway.foreign import told_conflict, unknown_to
from fencerow.web.gateway.reached import reached
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Changed, Difference, Given, Told, surely
from fencerow.web.tokens.scope import Scope


class Cancelling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs to leave alone."""

    only: Annotated[Literal["queued"], Meta(description="leave a running job alone")] | None = None


class Cancelled(Told, frozen=True):
    """What the cancel did: `cancelled`, it never runs again; `requested`, its worker was asked to stop it."""

    id: str
    answer: Literal["cancelled", "requested"]


class Revived(Told, frozen=True):
    """The job is queued again."""

    id: str
    answer: Literal["revived"] = "revived"


class Deleted(Told, frozen=True):
    """The job is removed."""

    id: str
    answer: Literal["deleted"] = "deleted"


class Change(Given, frozen=True):
    """What to change of a job that nobody runs; what is left out stays. `args` are all of the new arguments."""

    run_at: Annotated[datetime, Meta(tz=True)] | UnsetType = UNSET
    delay_s: float | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    args: dict[str, Any] | UnsetType = UNSET


async def cancel(call: Call) -> Answer:
    """Cancel a job: 200 when it never runs again, 202 when it runs and its worker was asked to stop it."""
    job = await call.seen(call.params["id"])
    answer = await call.acting.acancel(job.id, reason=call.reason, only_queued=call.query.only == "queued")
    status = 200 if answer is CancelAnswer.CANCELLED else 202
    return Answer(status, Cancelled(id=job.id, answer=answer.value))


async def revive(call: Call) -> Answer:
    """Queue a finished job again: its budgets start anew, and the number of its attempt goes on."""
    job = await call.seen(call.params["id"])
    try:
        await call.acting.arevive(job.id, reason=call.reason)
    except KeyConflict as error:
        raise (await told_conflict(call, error)) from None
    return Answer(200, Revived(id=job.id))


async def change(call: Call) -> Answer:
    """Change a job while nobody runs it: when it is due, its priority, its queue, its arguments."""
    wanted: Change = call.body
    if isinstance(wanted.queue, str):
        reached(call, wanted.queue)
    job = await call.seen(call.params["id"])
    given = {
        name: value for name in wanted.__struct_fields__ if (value := getattr(wanted, name)) is not UNSET
    }
    try:
        done = await call.acting.achange(job.id, **given, reason=call.reason)
    except UnknownJob as error:
        raise unknown_to(call, job.name, error) from None
    return Answer(200, changed(done))


async def run_now(call: Call) -> Answer:
    """Make a job due at once that would be due later. One that is due already keeps its place."""
    job = await call.seen(call.params["id"])
    return Answer(200, changed(await call.acting.arun_now(job.id, reason=call.reason)))


async def delete(call: Call) -> Answer:
    """Remove a finished job with its timeline and logs. Its key stays for the lifetime that it was given."""
    job = await call.seen(call.params["id"])
    await call.acting.adelete(job.id)
    return Answer(200, Deleted(id=job.id))


def changed(done: JobChanged) -> Changed:
    """What a change did, as callers see it."""
    return Changed(
        id=done.id,
        state=done.state,  # type: ignore[arg-type] # it is one of those
        queue=done.queue,
        priority=done.priority,
        run_at=surely(done.run_at_us),
        changes={
            name.removesuffix("_us"): Difference(before=_told(name, before), after=_told(name, after))
            for name, (before, after) in done.changes.items()
        },
    )


def _told(name: str, value: Any) -> Any:
    return iso(value) if name.endswith("_us") else value


MOVED = (JobNotFound, JobGone, IllegalMove, Busy, OutcomeUnknown)
ROUTES = (
    Route(
        "DELETE", "/v1/jobs/{id}", "cancelJob", cancel, Scope.CANCEL, {200: Cancelled, 202: Cancelled},
        query=Cancelling, refusals=MOVED,
    ),
    Route(
        "PATCH", "/v1/jobs/{id}", "changeJob", change, Scope.OPERATE, {200: Changed}, body=Change,
        refusals=(*MOVED, UnknownJob, InvalidArguments, InvalidPayload, PayloadTooLarge, StoreUnavailable),
    ),
    Route(
        "POST", "/v1/jobs/{id}/revive", "reviveJob", revive, Scope.OPERATE, {200: Revived},
        refusals=(*MOVED, KeyConflict),
    ),
    Route("POST", "/v1/jobs/{id}/run-now", "runJobNow", run_now, Scope.OPERATE, {200: Changed}, refusals=MOVED),
    Route("POST", "/v1/jobs/{id}/delete", "deleteJob", delete, Scope.OPERATE, {200: Deleted}, refusals=MOVED),
)  # fmt: skip
