"""Webhooks: endpoints with their state and circuit, what they were told, and each attempt. Never a secret."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlsplit

from fencerow.core.errors import Busy, InvalidInput
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section
from fencerow.web.webhooks.endpoint import Endpoint
from fencerow.web.webhooks.looking import Delivery, DeliveryState
from fencerow.web.webhooks.verbs import STATES, Webhooks

PAGE = 50
ENDPOINTS_SHOWN = 200
FILTERS = ("endpoint", "state", "job", "webhook_id")


async def webhooks(look: Look) -> dict[str, Any]:
    """Three statements: endpoints, a page of deliveries, the clock."""
    chosen = {name: text for name in FILTERS if (text := look.query.get(name, "").strip())}
    now_us = await look.now_us()
    found, trouble = await _found(look, chosen)
    shown = found[:PAGE]
    last = shown[-1] if len(found) > PAGE else None
    endpoints = await _endpoints(look)
    return {
        "now_us": now_us,
        "endpoints": endpoints,
        "url_of": url_of,
        "deliveries": shown,
        "trouble": trouble,
        "older": None if last is None else {**chosen, "before": last.event_id, "behind": last.endpoint},
        "paged": "before" in look.query,
        "chosen": chosen,
        "filters": [
            (name, value, {other: chosen[other] for other in chosen if other != name})
            for name, value in chosen.items()
        ],
        "states_of_deliveries": STATES,
    }


async def _endpoints(look: Look) -> list[Endpoint] | None:
    """The endpoints; None where there are more than a page may read."""
    try:
        return (await Webhooks(look.client).aknown())[:ENDPOINTS_SHOWN]
    except Busy:
        return None


async def _found(look: Look, chosen: dict[str, str]) -> tuple[list[Delivery], str | None]:
    """A page of deliveries and one more if there is one; or why there is none."""
    before = look.query.get("before")
    try:
        found = await Webhooks(look.client).adeliveries(
            chosen.get("endpoint"),
            state=cast("DeliveryState | None", chosen.get("state")),  # the verb checks it
            job=chosen.get("job"),
            webhook_id=chosen.get("webhook_id"),
            before=None if before is None else _number(before),
            behind=look.query.get("behind"),
            limit=PAGE + 1,
        )
    except InvalidInput as error:
        return [], f"{error.what}: {error.why}"
    except Busy:
        return [], "This took too long, so it was given up. Narrow it: by endpoint, or by the id of a job."
    return found, None


async def delivery(look: Look) -> dict[str, Any]:
    """Two statements: one delivery, and every attempt of it."""
    endpoint, event = look.query.get("endpoint", ""), _number(look.query.get("event", ""))
    verbs = Webhooks(look.client)
    found = await verbs.adeliveries(endpoint, before=event + 1, limit=1)
    if not found or found[0].event_id != event:
        raise InvalidInput(
            f"the endpoint {ascii(endpoint)[:80]} was told of no such end",
            "retention may have removed the delivery, or it is another one's",
            "look among the webhooks",
        )
    attempts = await verbs.aattempts(endpoint, event)
    return {"now_us": found[0].now_us, "delivery": found[0], "attempts": attempts}


def url_of(endpoint: Endpoint) -> str:
    """Where it is, without what may be secret there: the name, the password and what stands behind the `?`."""
    parts = urlsplit(endpoint.url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}{'?…' if parts.query else ''}"


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput(
            f"the number of an event is {ascii(text)[:40]}", "a whole number is expected", "go back"
        )
    return int(text)


async def enable(act: Act) -> PressAnswer:
    """Tell it again of ends, from now on."""
    name = act.form.get("endpoint", "")
    if await Webhooks(act.client).aenable(name):
        return PressAnswer(f"{name} is told of ends again, from now on.")
    return PressAnswer(f"{name} was enabled already.", changed=False)


async def disable(act: Act) -> PressAnswer:
    """Tell it nothing more."""
    name = act.form.get("endpoint", "")
    if await Webhooks(act.client).adisable(name, reason=act.reason):
        return PressAnswer(
            f"{name} is told nothing more. Its deliveries under way fail, and can be redelivered later."
        )
    return PressAnswer(f"{name} was not enabled.", changed=False)


async def redeliver(act: Act) -> PressAnswer:
    """Send one delivery once more, whether it arrived or failed."""
    name, webhook_id = act.form.get("endpoint", ""), act.form.get("webhook_id", "")
    if await Webhooks(act.client).aredeliver(name, state=None, webhook_id=webhook_id):
        return PressAnswer(f"It is sent to {name} once more, under the same webhook-id.")
    return PressAnswer(
        "A job delivers it still, or it is not there any more. Nothing was sent.", changed=False
    )


ACTIONS = (
    Action("/webhooks/enable", enable),
    Action("/webhooks/disable", disable),
    Action("/webhooks/redeliver", redeliver),
)
SCREENS = (
    Screen(
        "webhooks",
        "/webhooks",
        "Webhooks",
        webhooks,
        section=Section.SYSTEM,
        place=210,
        key="h",
        actions=ACTIONS,
    ),
    Screen("delivery", "/webhooks/delivery", "Delivery", delivery, place=211),
)
