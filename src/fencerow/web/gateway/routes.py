"""The table of all routes."""

from __future__ import annotations

from fencerow.web.gateway import about, events, jobs, listing, queues, schedules, streams, turns, workers
from fencerow.web.gateway.route import Route


def routes() -> tuple[Route, ...]:
    """All of them, in the order in which the OpenAPI document tells them."""
    return (
        *jobs.ROUTES,
        *listing.ROUTES,
        *streams.ROUTES,
        *queues.ROUTES,
        *turns.ROUTES,
        *workers.ROUTES,
        *schedules.ROUTES,
        *events.ROUTES,
        *about.ROUTES,
    )
