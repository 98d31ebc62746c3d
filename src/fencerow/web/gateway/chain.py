"""What stands before every route, in this order: is the host ours, who asks, may they, how often, how large, what.

Each step refuses with an error of ours; the last one turns whatever was raised into a problem document. Nothing is
stored before the route's own function is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from fencerow.app import App
from fencerow.core.errors import FencerowError, InvalidInput
from fencerow.core.model.ids import new_id
from fencerow.db.text import shortened
from fencerow.web.errors import (
    NotAllowed,
    NotAuthenticated,
    RequestTooSlow,
    TooLate,
    TooManyRequests,
    Unready,
)
from fencerow.web.gateway.answering import refusal_of, response_of
from fencerow.web.gateway.bearer import Authorize
from fencerow.web.gateway.closing import Closing
from fencerow.web.gateway.cuts import Cuts
from fencerow.web.gateway.problem import placed
from fencerow.web.gateway.route import WAIT_S_MAX, Answer, Call, Origin, Route
from fencerow.web.reading import headers as read
from fencerow.web.reading.addresses import check_address
from fencerow.web.reading.bodies import Bodies, Body
from fencerow.web.reading.body import Gone, body_by_settings
from fencerow.web.reading.callers import caller_of
from fencerow.web.reading.origins import address_of, check_host
from fencerow.web.reading.rates import Rates
from fencerow.web.reading.room import Room, Seat
from fencerow.web.reading.strict import Bounds, plain
from fencerow.web.reading.traces import trace_of
from fencerow.web.settings import WebSettings
from fencerow.web.tokens.scope import Grant
from fencerow.web.tokens.scope import Scope as Permission

log = logging.getLogger("fencerow.web")

NOBODY = Grant(id="", name="", scopes=frozenset(), queues=frozenset())


@dataclass(frozen=True, slots=True)
class House:
    """What all routes of one gateway share."""

    app: App
    authorize: Authorize
    settings: WebSettings
    standing: Readiness
    rates: Rates
    bodies: Bodies
    room: Room
    waiting_room: Room
    streams: Room
    closing: Closing
    cuts: Cuts


class Readiness:
    """Whether the gateway takes requests: `reason` says why not, to callers and to `/readyz`."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.leaving = asyncio.Event()  # told to those who wait: they are answered as things stand

    def check(self) -> None:
        """Whether a request may come in.

        Raises:
            Unready: it may not.
        """
        if self.reason is not None:
            raise unready(self.reason)

    def leave(self) -> None:
        """Take no new requests; those under way end."""
        self.reason = "the gateway is stopping"
        self.leaving.set()


class RouteApp:
    """One route as an ASGI application."""

    def __init__(self, route: Route, house: House) -> None:
        self.route = route
        self.house = house

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, headers = Request(scope, receive), read.HeaderValues.of(scope["headers"])
        origin = _origin(request, headers, self.house.settings)
        seat: Seat | None = None
        try:
            answer = await self._answered(request, headers, origin)
            seat = answer.seat
            response = response_of(answer, origin, only_head=request.method == "HEAD")
        except Gone:
            return  # nobody is there to read an answer
        except Exception as error:
            self._note(error)
            response = refusal_of(error, origin, self.route.name)
        try:
            await response(scope, receive, send)
        finally:
            if seat is not None:
                seat.leave()

    def _note(self, error: Exception) -> None:
        """Tell the log of callers who are slow, or too many; not of each, for strangers could fill it."""
        if isinstance(error, RequestTooSlow):
            self.house.cuts.note(error.what, how="refused")
        elif isinstance(error, TooManyRequests) and error.status == 503:
            self.house.cuts.note(error.what, logging.WARNING, how="refused")

    async def _answered(self, request: Request, headers: read.HeaderValues, origin: Origin) -> Answer:
        route, house = self.route, self.house
        if not route.of_itself:
            house.standing.check()
        read.check_headers(request.scope["headers"], house.settings)
        check_address(request.scope)
        check_host(headers.getlist("host"), house.settings)
        if not route.of_itself and not route.in_maintenance:
            await house.closing.check()
        grant = await self._grant(request, origin)
        who = caller_of(grant.id, origin.address)
        if not route.of_itself:
            house.rates.check(who, asyncio.get_running_loop().time())
        with house.bodies.body() as held:
            # A body that comes slowly has no seat: those whose request is whole need them.
            body = await self._body(request, headers, held)
            query = _query(request, route.query)
            room = house.waiting_room if route.waits_for(query, headers) else house.room
            with room.seat(who):
                return await self._served(request, headers, grant, origin, query, body)

    async def _served(
        self,
        request: Request,
        headers: read.HeaderValues,
        grant: Grant,
        origin: Origin,
        query: Any,
        body: Any,
    ) -> Answer:
        """What the route answers to a request that is whole."""
        house, waits = self.house, self.route.waits_for(query, headers)
        # Who does not wait is not interrupted: what was begun is done.
        async with _hung_up(request) if waits else _stays() as gone:
            call = Call(
                app=house.app,
                grant=grant,
                origin=origin,
                base=request.scope.get("root_path", "").rstrip("/"),
                params=MappingProxyType(dict(request.path_params)),
                query=query,
                body=body,
                headers=headers,
                gone=gone,
                standing=house.standing.reason,
                leaving=house.standing.leaving,
                streams=house.streams,
            )
            return await self._in_time(call, waits=waits)

    async def _grant(self, request: Request, origin: Origin) -> Grant:
        """Who asks.

        Raises:
            NotAuthenticated: nobody that we know. NotAllowed: their token is not good for this.
            TooManyRequests: so many came from there that were nobody's.
        """
        wanted = self.route.scope
        if wanted is None:
            return NOBODY
        grant = await self.house.authorize(request)
        if grant is None:
            self.house.rates.check(caller_of("", origin.address), asyncio.get_running_loop().time())
            raise _nobody()
        if not grant.may(wanted):
            raise _unscoped(wanted)
        return grant

    async def _body(self, request: Request, headers: read.HeaderValues, room: Body) -> Any:
        if self.route.body is None and not self.route.is_raw:
            return None
        settings = self.house.settings
        raw = await body_by_settings(request.receive, headers, settings, room)
        if self.route.body is None:
            return raw
        return converted(plain(raw, Bounds.of(settings)), self.route.body, "the body")

    async def _in_time(self, call: Call, *, waits: bool) -> Answer:
        """The route's answer. It is given up when the database takes too long; one that waits has its wait besides."""
        limit_s = self.house.settings.web_request_s + (WAIT_S_MAX if waits else 0.0)
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                return await self.route.answer(call)
        except TimeoutError:
            if not limit.expired():
                raise  # an error of ours that is one too, such as that there is no result yet
            raise _too_late(limit_s) from None


def unready(reason: str) -> Unready:
    """The refusal while the gateway takes no requests."""
    return Unready(reason, "it takes no requests now", "repeat a little later")


def _nobody() -> NotAuthenticated:
    return NotAuthenticated(
        "the request has no token that is good here",
        "a token that is missing, unknown, revoked or expired is answered alike",
        "send `Authorization: Bearer TOKEN`; `fencerow tokens create` makes one",
    )


def _too_late(limit_s: float) -> TooLate:
    return TooLate(
        f"there was no answer within {limit_s:g} s",
        "what was asked for may have been done",
        "repeat it under the same idempotency key, or look",
    )


def _unscoped(wanted: Permission) -> NotAllowed:
    return NotAllowed(f"the token lacks the scope {wanted}", "this needs it", "use a token that has it")


def converted(data: object, into: type[msgspec.Struct], what: str, *, strict: bool = True) -> msgspec.Struct:
    """Plain data as the type that a route takes.

    Raises:
        InvalidInput: it does not fit; where it does not is told.
    """
    try:
        return msgspec.convert(data, into, strict=strict)
    except msgspec.ValidationError as error:
        refused = InvalidInput(
            f"{what} does not fit", shortened(str(error), 300), "see /openapi.json for what is taken"
        )
        raise placed(refused, "$" if strict else "?") from None


def _query(request: Request, into: type[msgspec.Struct]) -> msgspec.Struct:
    """The query's parameters. One that may be repeated is a list in the type."""
    found: dict[str, Any] = {}
    if not request.scope["query_string"]:
        return converted(found, into, "the query", strict=False)
    lists = {each.name for each in msgspec.structs.fields(into) if "list" in str(each.type)}
    instants = {each.name for each in msgspec.structs.fields(into) if "datetime" in str(each.type)}
    for name, value in request.query_params.multi_items():
        if "\0" in name or "\0" in value:
            raise InvalidInput("a query parameter holds a NUL", "no text of ours has one", "remove it")
        if name in instants and "T" not in value.upper():
            raise _no_instant(name, value)  # of a number msgspec would make seconds since 1970
        if name in lists:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise InvalidInput(
                f"the query gives {ascii(name)[:60]} twice", "it has one value", "send it once"
            )
        else:
            found[name] = value
    return converted(found, into, "the query", strict=False)


def _no_instant(name: str, value: str) -> FencerowError:
    return placed(
        InvalidInput(
            f"{name} is {ascii(value)[:60]}",
            "an instant in ISO 8601 with its zone is expected",
            "send it such as 2026-11-29T12:00:00Z",
        ),
        f"?{name}",
    )


def origin_of(request: Request, settings: WebSettings) -> Origin:
    """Where the request comes from. What a caller sends of it is taken if it is short and plain, else made anew."""
    return _origin(request, read.HeaderValues.of(request.scope["headers"]), settings)


def _origin(request: Request, headers: read.HeaderValues, settings: WebSettings) -> Origin:
    trace = trace_of(headers.getlist("traceparent"), headers.getlist("tracestate"))
    own = new_id()
    return Origin(
        request_id=own,
        correlation_id=read.correlation_of(headers.getlist("x-correlation-id")) or own,
        traceparent=trace.traceparent,
        tracestate=trace.tracestate,
        address=address_of(request.client, headers.getlist("x-forwarded-for"), settings),
    )


@contextlib.asynccontextmanager
async def _stays() -> AsyncIterator[asyncio.Future[None]]:
    """A future for who is not watched."""
    yield asyncio.get_running_loop().create_future()


@contextlib.asynccontextmanager
async def _hung_up(request: Request) -> AsyncIterator[asyncio.Future[None]]:
    """A future that is done when the caller has hung up. The body was read before, so nothing else can come."""

    async def look() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(look())
    try:
        yield task
    finally:
        task.cancel()
