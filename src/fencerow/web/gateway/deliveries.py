"""Deliveries of webhooks over HTTP: which there are, every attempt of one, and sending them once more.

The bodies are not shown: what they tell of a job may be secret.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from fencerow.core.errors import InvalidInput
from fencerow.errors import EndpointConflict, EndpointNotFound
from fencerow.web.gateway.delivery_shapes import (
    AttemptDocument,
    AttemptList,
    AttemptsQuery,
    DeliveriesQuery,
    DeliveryDocument,
    DeliveryList,
    Redeliver,
    Redelivered,
)
from fencerow.web.gateway.endpoints import hooks
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.telling import each
from fencerow.web.tokens.scope import Scope
from fencerow.web.webhooks.looking import Delivery


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
