"""What the gateway says of itself: health for probes. Neither says more than its word to who is nobody."""

from __future__ import annotations

from typing import Literal

from fencerow.core.errors import DatabaseError
from fencerow.core.store import store
from fencerow.web.errors import Unready
from fencerow.web.gateway.chain import unready
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Told


class Health(Told, frozen=True):
    """One word, and no version."""

    status: Literal["ok"]


OK = Health(status="ok")


async def alive(_call: Call) -> Answer:
    """Whether the process serves HTTP at all; it asks no database."""
    return Answer(200, OK)


async def ready(call: Call) -> Answer:
    """Whether requests would be served now: the gateway takes them, and the database answers."""
    if call.standing is not None:
        raise unready(call.standing)
    try:
        await call.app.engine.arun(store.clock())
    except DatabaseError:
        raise unready("the database cannot be used now") from None
    return Answer(200, OK)


ROUTES = (
    Route("GET", "/livez", "alive", alive, None, {200: Health}, tag="health", of_itself=True),
    Route(
        "GET",
        "/readyz",
        "ready",
        ready,
        None,
        {200: Health},
        tag="health",
        of_itself=True,
        refusals=(Unready,),
    ),
)
