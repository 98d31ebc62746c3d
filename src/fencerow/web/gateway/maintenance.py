"""Maintenance over HTTP: begun, ended and looked at, also while it is on."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from fencerow.web.gateway.queues import Reason
from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.gateway.telling import told
from fencerow.web.maintenance.client import RETRY_AFTER_S, RETRY_AFTER_S_MAX
from fencerow.web.tokens.scope import Scope


class MaintenanceDocument(Told, frozen=True, kw_only=True):
    """Whether the gateways are under maintenance; if so since when, by whom and why."""

    on: bool
    since: Instant | None = None
    set_by: str | None = None
    reason: str | None = None
    retry_after_s: int | None = None


class BeginMaintenance(Given, frozen=True, kw_only=True):
    """Why, and after how many seconds callers are told to come again."""

    reason: Reason | None = None
    retry_after_s: Annotated[int, Meta(ge=1, le=RETRY_AFTER_S_MAX)] = RETRY_AFTER_S


class EndMaintenance(Given, frozen=True, kw_only=True):
    """Nothing is to be said."""


class MaintenanceChanged(Told, frozen=True, kw_only=True):
    """Whether maintenance is on now, and whether this changed it."""

    on: bool
    changed: bool


async def show(call: Call) -> Answer:
    """Whether the gateways are under maintenance. It is answered while they are."""
    everywhere(call, "gateways")
    found = await call.client.maintenance.aget()
    is_off = MaintenanceDocument(on=False)
    return Answer(200, is_off if found is None else told(MaintenanceDocument, found, on=True))


async def begin(call: Call) -> Answer:
    """Let all gateways answer 503 to all but health and this, within two seconds. It may be repeated.

    Workers, schedules and submits by the library go on."""
    everywhere(call, "gateways")
    wanted: BeginMaintenance = call.body
    changed = await call.acting.maintenance.abegin(reason=wanted.reason, retry_after_s=wanted.retry_after_s)
    return Answer(200, MaintenanceChanged(on=True, changed=changed))


async def end(call: Call) -> Answer:
    """Let all gateways take requests again, within two seconds. It may be repeated."""
    everywhere(call, "gateways")
    changed = await call.acting.maintenance.aend()
    return Answer(200, MaintenanceChanged(on=False, changed=changed))


ROUTES = (
    Route(
        "GET", "/v1/maintenance", "showMaintenance", show, Scope.READ, {200: MaintenanceDocument},
        tag="maintenance", in_maintenance=True,
    ),
    Route(
        "POST", "/v1/maintenance/on", "beginMaintenance", begin, Scope.OPERATE, {200: MaintenanceChanged},
        body=BeginMaintenance, tag="maintenance", in_maintenance=True,
    ),
    Route(
        "POST", "/v1/maintenance/off", "endMaintenance", end, Scope.OPERATE, {200: MaintenanceChanged},
        body=EndMaintenance, tag="maintenance", in_maintenance=True,
    ),
)  # fmt: skip
