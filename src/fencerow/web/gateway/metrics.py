"""`/metrics` of a gateway: what its process did and what the database looks like, for callers with a token."""

from __future__ import annotations

import asyncio

from fencerow.metrics.page import CONTENT_TYPE, Metrics
from fencerow.web.errors import NotAllowed
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.tokens.scope import Scope


def metrics_route(metrics: Metrics) -> Route:
    """For `Gateway(app, also=[metrics_route(Metrics(app))])`, and for `fencerow serve --metrics`."""

    async def show_metrics(call: Call) -> Answer:
        """The metrics of the gateway's process and of the database, in the text format of Prometheus.

        They name all queues, so a token that is good for some of them is refused.
        """
        if not call.grant.reaches_all:
            raise NotAllowed(
                "the token is not good for metrics",
                "it is good for some queues, and metrics tell of all",
                "use a token for all queues",
            )
        # In a thread, since the look at the database waits.
        page = await asyncio.to_thread(metrics.page)
        return Answer(200, content=page, content_type=CONTENT_TYPE)

    return Route(
        "GET",
        "/metrics",
        "showMetrics",
        show_metrics,
        Scope.READ,
        {200: None},
        tag="health",
        content_type=CONTENT_TYPE,
    )
