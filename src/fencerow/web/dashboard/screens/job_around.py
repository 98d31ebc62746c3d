"""What stands around one job: who was told of its end, events of its request, its handover, its unique keys."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.ids import parse_id
from fencerow.db.run import ask
from fencerow.handovers.looking import placed_handover
from fencerow.traces.carrying import CORRELATION
from fencerow.unique.keys import unique_keys_of
from fencerow.web.dashboard.counting.around import LOOK, events_around
from fencerow.web.dashboard.screen import Look, Screen
from fencerow.web.dashboard.screens.job import trace_of
from fencerow.web.webhooks.verbs import Webhooks

SHOWN = 50


async def around(look: Look) -> dict[str, Any]:
    """Six statements: the job, deliveries, events, the handover, the unique keys, the clock."""
    client, job_id = look.client, parse_id(look.params["id"])
    record = await client.aget(job_id)
    correlation, trace = (record.headers or {}).get(CORRELATION), trace_of(record)
    deliveries = await Webhooks(client).adeliveries(job=job_id, limit=SHOWN + 1)
    events = await client.arun(
        ask(events_around(job_id, correlation=correlation, trace=trace, limit=SHOWN + 1))
    )
    return {
        "job": record,
        "correlation": correlation,
        "trace": trace,
        "deliveries": deliveries[:SHOWN],
        "more_deliveries": len(deliveries) > SHOWN,
        "events": events[:SHOWN],
        "more_events": len(events) > SHOWN,
        "look": LOOK,
        "placed": await client.arun(ask(placed_handover(job_id))),
        "unique": (await client.arun(ask(unique_keys_of([job_id])))).get(job_id, []),
        "now_us": await look.now_us(),
    }


SCREENS = (Screen("job_around", "/jobs/{id}/around", "Around the job", around, place=23, live=False),)
