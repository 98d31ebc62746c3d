"""Deliveries of webhooks over HTTP: which there are, every attempt of one, and sending them once more.

The bodies are not shown: what they tell of a job may be secret.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from fencerow.core.errors import InvalidInput
from fencerow.errors import EndpointConflict, EndpointNotFound
from fencerow.web.gateway.endpoints import EndpointName, hooks
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.gateway.telling import each
from fencerow.web.tokens.scope import Scope
from fencerow.web.webhooks.looking import Delivery, DeliveryState

LIMIT_MAX = 200
When = Annotated[datetime, Meta(tz=True)]
WebhookId = Annotated[str, Meta(min_length=1, max_length=100)]
JobId = Annotated[str, Meta(min_length=1, max_length=100)]


class DeliveryDocument(Told, frozen=True, kw_only=True):
    """What an endpoint is told of the end of the job `ended_id`. `pending`: the job `job_id` delivers it still;
    `failed`: none does. `status`, `failure`, `last` and `took_s` are of the last attempt; no status: no answer."""

    endpoint: str
    event_id: int
    webhook_id: str
    topic: str
    ended_id: str
    job_id: str
    state: DeliveryState
    created_at: Instant
    attempts: int
    delivered_at: Instant | None
    status: int | None
    failure: str | None
    last: Instant | None
    took_s: float | None


class DeliveryList(Told, frozen=True, kw_only=True):
    """A page of deliveries, the newest first. `next` is the cursor of the page after it, null if there is none."""

    deliveries: list[DeliveryDocument]
    next: str | None


class AttemptDocument(Told, frozen=True, kw_only=True):
    """One attempt of a delivery: the status, or what kind of failure it was."""

    number: int
    at: Instant
    took_s: float
    status: int | None
    failure: str | None


class AttemptList(Told, frozen=True, kw_only=True):
    """Every attempt of one delivery, in their order; none where nothing was tried, or there is no such delivery."""

    attempts: list[AttemptDocument]


class Redelivered(Told, frozen=True, kw_only=True):
    """How many deliveries are sent once more, or with `dry_run` would be."""

    dry_run: bool
    count: int


class DeliveriesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which deliveries: those that fit all that is given."""

    endpoint: EndpointName | None = None
    state: DeliveryState | None = None
    job: Annotated[JobId, Meta(description="the id of the job whose end they tell")] | None = None
    webhook_id: WebhookId | None = None
    since: Annotated[When, Meta(description="made then or later")] | None = None
    until: Annotated[When, Meta(description="made before")] | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 50
    cursor: Annotated[str, Meta(description="`next` of the page before", max_length=600)] | None = None


class AttemptsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which delivery: that of this event to this endpoint."""

    endpoint: EndpointName
    event: Annotated[int, Meta(ge=0, le=2**62, description="`event_id` of a delivery")]


class Redeliver(Given, frozen=True, kw_only=True):
    """Which deliveries: those that fit all that is given; without `state` those that failed, with null also those that
    arrived. Something must be given but the state."""

    endpoint: EndpointName | None = None
    state: Annotated[str, Meta(pattern="^(failed|delivered)$")] | None = "failed"
    job: JobId | None = None
    webhook_id: WebhookId | None = None
    since: When | None = None
    until: When | None = None
    dry_run: bool = False


async def list_deliveries(call: Call) -> Answer:
    """Deliveries of webhooks, the newest first, with the last answer to each.

    A page says in `next`, and in `Link`, where the next one begins. No delivery is left out between two pages.
    """
    wanted: DeliveriesQuery = call.query
    before, behind = (None, None) if wanted.cursor is None else place_of(wanted.cursor)
    filters = {name: getattr(wanted, name) for name in FILTERS}
    found = await hooks(call).adeliveries(before=before, behind=behind, limit=wanted.limit + 1, **filters)
    shown = found[: wanted.limit]
    following = cursor_of(shown[-1]) if len(found) > len(shown) else None
    headers = {} if following is None else {"link": f'<{_address(call, following)}>; rel="next"'}
    return Answer(200, DeliveryList(deliveries=each(DeliveryDocument, shown), next=following), headers)


async def list_attempts(call: Call) -> Answer:
    """Every attempt of one delivery: when, how long, and what was answered."""
    known, wanted = hooks(call), call.query
    await known.aget(wanted.endpoint)
    found = await known.aattempts(wanted.endpoint, wanted.event)
    return Answer(200, AttemptList(attempts=each(AttemptDocument, found)))


async def redeliver(call: Call) -> Answer:
    """Send deliveries once more, with the same body under the same `webhook-id`; with `dry_run` only count them.

    What a job delivers still is left alone, so it may be repeated. Beyond 10,000 nothing is sent (422).
    """
    wanted: Redeliver = call.body
    filters = {name: getattr(wanted, name) for name in FILTERS}
    found = await hooks(call).aredeliver(dry_run=wanted.dry_run, **filters)
    return Answer(200, Redelivered(dry_run=wanted.dry_run, count=len(found)))


FILTERS = ("endpoint", "state", "job", "webhook_id", "since", "until")


def cursor_of(last: Delivery) -> str:
    """Where the page after this delivery begins, as callers carry it."""
    return base64.urlsafe_b64encode(f"{last.event_id}:{last.endpoint}".encode()).decode().rstrip("=")


def place_of(cursor: str) -> tuple[int, str]:
    """The event and the endpoint after which a page begins.

    Raises:
        InvalidInput: no page said so.
    """
    try:
        text = base64.b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}", b"-_", validate=True).decode()
        event, _, endpoint = text.partition(":")
        if not (event.isascii() and event.isdecimal() and len(event) <= 18 and endpoint):
            raise ValueError(event)
    except ValueError:
        raise InvalidInput(
            f"cursor is {ascii(cursor)[:60]}", "no page ends there", "take `next` of a page, or none"
        ) from None
    return int(event), endpoint


def _address(call: Call, cursor: str) -> str:
    wanted: DeliveriesQuery = call.query
    given: dict[str, Any] = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name in (*FILTERS, "limit")
        if (value := getattr(wanted, name)) is not None
    }
    return f"{call.base}/v1/webhooks/deliveries?{urlencode({**given, 'cursor': cursor})}"


ROUTES = (
    Route(
        "GET", "/v1/webhooks/deliveries", "listDeliveries", list_deliveries, Scope.READ, {200: DeliveryList},
        query=DeliveriesQuery, tag="webhooks",
    ),
    Route(
        "GET", "/v1/webhooks/attempts", "listAttempts", list_attempts, Scope.READ, {200: AttemptList},
        query=AttemptsQuery, refusals=(EndpointNotFound,), tag="webhooks",
    ),
    Route(
        "POST", "/v1/webhooks/redeliver", "redeliverWebhooks", redeliver, Scope.OPERATE, {200: Redelivered},
        body=Redeliver, refusals=(EndpointNotFound, EndpointConflict), waits=True, tag="webhooks",
    ),
)  # fmt: skip
