"""The table of all routes."""

from __future__ import annotations

from fencerow.web.gateway.about import ROUTES as ABOUT
from fencerow.web.gateway.approvals import ROUTES as APPROVALS
from fencerow.web.gateway.confirming import ROUTES as CONFIRMING
from fencerow.web.gateway.deliveries import ROUTES as DELIVERIES
from fencerow.web.gateway.downloads import ROUTES as DOWNLOADS
from fencerow.web.gateway.endpoints import ROUTES as ENDPOINTS
from fencerow.web.gateway.events import ROUTES as EVENTS
from fencerow.web.gateway.flows import ROUTES as FLOWS
from fencerow.web.gateway.jobs import ROUTES as JOBS
from fencerow.web.gateway.keys import ROUTES as KEYS
from fencerow.web.gateway.limits import ROUTES as LIMITS
from fencerow.web.gateway.listing import ROUTES as LISTING
from fencerow.web.gateway.maintenance import ROUTES as MAINTENANCE
from fencerow.web.gateway.mutexes import ROUTES as MUTEXES
from fencerow.web.gateway.output import ROUTES as OUTPUT
from fencerow.web.gateway.queues import ROUTES as QUEUES
from fencerow.web.gateway.route import Route
from fencerow.web.gateway.schedules import ROUTES as SCHEDULES
from fencerow.web.gateway.shares import ROUTES as SHARES
from fencerow.web.gateway.steps import ROUTES as STEPS
from fencerow.web.gateway.streams import ROUTES as STREAMS
from fencerow.web.gateway.worked import ROUTES as WORKED
from fencerow.web.gateway.workers import ROUTES as WORKERS


def routes() -> tuple[Route, ...]:
    """All of them, in the order in which the OpenAPI document tells them."""
    return (
        *JOBS,
        *DOWNLOADS,
        *LISTING,
        *STREAMS,
        *FLOWS,
        *STEPS,
        *OUTPUT,
        *QUEUES,
        *KEYS,
        *LIMITS,
        *SHARES,
        *MUTEXES,
        *WORKERS,
        *SCHEDULES,
        *EVENTS,
        *CONFIRMING,
        *APPROVALS,
        *WORKED,
        *ENDPOINTS,
        *DELIVERIES,
        *MAINTENANCE,
        *ABOUT,
    )
