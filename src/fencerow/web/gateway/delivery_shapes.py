"""The documents of webhook deliveries: which are meant, how they stand, every attempt of one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from fencerow.web.gateway.endpoint_shapes import EndpointName
from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.webhooks.looking import DeliveryState

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
