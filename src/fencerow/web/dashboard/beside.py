"""The dashboard at a path of the gateway's own port: each with its own door, roles and bounds."""

from __future__ import annotations

from starlette.responses import RedirectResponse
from starlette.routing import Match, Mount
from starlette.types import Receive, Scope, Send

from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.gateway.asgi import Gateway

PATH = "/dashboard"


class GatewayBeside:
    """What is below `PATH` goes to the dashboard, all else to the gateway. It is served and closed as one of them."""

    def __init__(self, gateway: Gateway, dashboard: Dashboard) -> None:
        self._gateway = gateway
        self._dashboard = dashboard
        self._mount = Mount(PATH, dashboard)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH:
            await RedirectResponse(f"{PATH}/", 308)(scope, receive, send)
            return
        found, child = self._mount.matches(scope)
        if found is Match.NONE:
            await self._gateway(scope, receive, send)
            return
        await self._mount.handle({**scope, **child}, receive, send)

    def leave(self) -> None:
        """Take no new requests, and end the pages that are kept live. It may be repeated."""
        self._gateway.leave()
        self._dashboard.leave()

    async def aclose(self) -> None:
        """End what both do beside requests. The app stays open."""
        try:
            await self._dashboard.aclose()
        finally:
            await self._gateway.aclose()
