"""From the table of routes to an ASGI application that runs alone or inside another one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Mapped
from starlette.types import Receive, Scope, Send

from fencerow.app import App
from fencerow.web.errors import NoSuchRoute, Unready
from fencerow.web.gateway.answering import refusal_of
from fencerow.web.gateway.bearer import Authorize, Bearer
from fencerow.web.gateway.chain import House, Readiness, RouteApp, origin_of
from fencerow.web.gateway.closing import Closing
from fencerow.web.gateway.cuts import Cuts
from fencerow.web.gateway.hooks import HOOKS, hook_routes
from fencerow.web.gateway.openapi import document
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.routes import routes
from fencerow.web.reading.bodies import Bodies
from fencerow.web.reading.origins import check_settings
from fencerow.web.reading.rates import Rates
from fencerow.web.reading.room import Room
from fencerow.web.settings import WebSettings
from fencerow.web.tallies.counting import HookTallies


class Gateway:
    """The gateway of one app, as an ASGI application.

    `authorize` says who asks, from the request; by default the token in its `Authorization` header. Mount it where you
    like: links in its answers begin with the path it is mounted at. It opens nothing before the first request and
    needs no lifespan; close the app when the program ends, as elsewhere. `leave()` first, so that those who wait are
    answered. With `only_hooks` it has nothing but the places of `receive_webhooks`, at `/NAME`.

    Raises:
        SecretMissing: a place for webhooks of others has no secret in the environment.
    """

    def __init__(
        self,
        app: App,
        *,
        authorize: Authorize | None = None,
        also: Sequence[Route] = (),
        only_hooks: bool = False,
    ) -> None:
        settings = WebSettings.of(app.config)
        check_settings(settings)
        self.standing = Readiness()
        self._bearer = Bearer(lambda: app.client, settings)
        self._house = House(
            app=app,
            authorize=authorize or self._bearer,
            settings=settings,
            standing=self.standing,
            rates=Rates.of(settings),
            bodies=Bodies.of(settings),
            room=Room.of(settings),
            waiting_room=Room.waiting(settings),
            streams=Room.streaming(settings),
            closing=Closing(lambda: app.client),
            cuts=Cuts(),
        )
        own = Route(
            "GET", "/openapi.json", "getOpenApi", self._described, None, {200: None},
            tag="about", in_maintenance=True, refusals=(Unready,),
        )  # fmt: skip
        self._tallies = HookTallies(lambda: app.client)
        hooks = hook_routes(app, "" if only_hooks else HOOKS, self._tallies)
        self.routes = (*(() if only_hooks else routes()), *hooks, *also, own)
        self._asgi = Starlette(
            routes=[_mapped(path, methods, self._house) for path, methods in _by_path(self.routes).items()],
            exception_handlers={HTTPException: self._unrouted},
        )
        self._asgi.router.redirect_slashes = False  # it would lead to whatever Host was sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._asgi(scope, receive, send)

    def describe(self) -> None:
        """Make the OpenAPI document now, not when somebody first asks for it: all others would wait meanwhile."""
        assert self._encoded

    def leave(self) -> None:
        """Take no new requests and answer those who wait as things stand. It may be repeated."""
        self.standing.leave()

    async def aclose(self) -> None:
        """End what it does beside requests. The app stays open."""
        self._house.cuts.close()
        await self._house.closing.aclose()
        await self._bearer.aclose()
        await self._tallies.aclose()

    async def _described(self, _call: Call) -> Answer:
        """This document: all that the gateway takes and answers, as OpenAPI 3.1."""
        return Answer(200, content=self._encoded)

    @cached_property
    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document as data."""
        return document(self.routes)

    @cached_property
    def _encoded(self) -> bytes:
        """The same as it is answered: everybody may ask for it, so that must cost nothing."""
        return msgspec.json.encode(self.openapi)

    async def _unrouted(self, request: Request, error: Exception) -> Response:
        """No route has this path, or none with this method."""
        assert isinstance(error, HTTPException)
        response = refusal_of(
            _no_route(request, error.status_code),
            origin_of(request, self._house.settings),
            "none",
        )
        for name, value in (error.headers or {}).items():
            response.headers[name] = value
        return response


def _no_route(request: Request, status: int) -> NoSuchRoute:
    return NoSuchRoute(
        f"there is no {ascii(request.method)[1:-1][:20]} {ascii(request.url.path)[1:-1][:100]}",
        "the path is another one" if status == 404 else "the path takes other methods",
        "look in /openapi.json",
        status=status,
    )


class _Methods:
    """The endpoints of one path, by method."""

    def __init__(self, endpoints: dict[str, RouteApp]) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self._endpoints[method](scope, receive, send)


def _by_path(all_routes: Sequence[Route]) -> dict[str, list[Route]]:
    found: dict[str, list[Route]] = {}
    for route in all_routes:
        found.setdefault(route.path, []).append(route)
    return found


def _mapped(path: str, of_path: Sequence[Route], house: House) -> Mapped:
    endpoints = {route.method: RouteApp(route, house) for route in of_path}
    endpoint: Any = _Methods(endpoints)
    if any(route.takes_slashes for route in of_path):
        path = f"{path.removesuffix('}')}:path}}"  # servers tell the path decoded, so %2F is a slash here
    return Mapped(path, endpoint, methods=list(endpoints))
