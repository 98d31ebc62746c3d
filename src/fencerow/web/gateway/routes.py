"""The table of all routes."""

from __future__ import annotations

from fencerow.web.gateway.about import ROUTES as ABOUT
from fencerow.web.gateway.confirming import ROUTES as CONFIRMING
from fencerow.web.gateway.deliveries import ROUTES as DELIVERIES
from fencerow.web.gateway.downloads import ROUTES as DOWNLOADS
from fencerow.web.gateway.endpoints import ROUTES as ENDPOINTS
from fencerow.web.gateway.events import ROUTES as EVENTS
from fencerow.web.gateway.jobs import ROUTES as JOBS
from fencerow.web.gateway.listing import ROUTES as LISTING
from fencerow.web.gateway.maintenance import ROUTES as MAINTENANCE
from fencerow.web.gateway.queues import ROUTES as QUEUES
from fencerow.web.gateway.route import Route
from fencerow.web.gateway.schedules import ROUTES as SCHEDULES
from fencerow.web.gateway.streams import ROUTES as STREAMS
from fencerow.web.gateway.turns import ROUTES as TURNS
from fencerow.web.gateway.workers import ROUTES as WORKERS


def routes() -> tuple[Route, ...]:
    """All of them, in the order in which the OpenAPI document tells them."""
    return (
        *JOBS,
        *DOWNLOADS,
        *LISTING,
        *STREAMS,
        *QUEUES,
        *TURNS,
        *WORKERS,
        *SCHEDULES,
        *EVENTS,
        *CONFIRMING,
        *ENDPOINTS,
        *DELIVERIES,
        *MAINTENANCE,
        *ABOUT,
    )
