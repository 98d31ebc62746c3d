"""From the records of the screens to the entries of the dashboard: pages, live parts, presses, login, files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Match
from starlette.routing import Route as Mapped

from fencerow.app import App
from fencerow.core.errors import DatabaseError, FencerowError, InvalidInput
from fencerow.core.store import store
from fencerow.web.dashboard import telling
from fencerow.web.dashboard.canary import Canary
from fencerow.web.dashboard.door import Coming, Door, DoorEntry, is_ours
from fencerow.web.dashboard.guard import check_origin, check_token, form_of
from fencerow.web.dashboard.live import event
from fencerow.web.dashboard.looks import Looks, ScreenPlace, Seen
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Act, Action, PressAnswer, Screen
from fencerow.web.dashboard.source import Source
from fencerow.web.dashboard.statics import Statics
from fencerow.web.errors import NoSuchRoute, NotAuthenticated, TooLate
from fencerow.web.reading.callers import caller_of
from fencerow.web.reading.origins import address_of
from fencerow.web.reading.room import Room
from fencerow.web.settings import WebSettings

QUERY_MAX = 2_000
KEPT_OUT = frozenset({"form", "back"})  # fields of ours in every form


class Serving:
    """Answers of one dashboard."""

    def __init__(
        self,
        app: App,
        screens: Sequence[Screen],
        statics: Statics,
        looks: Looks,
        door: Door,
        settings: WebSettings,
        canary: Canary,
        source: Source,
    ) -> None:
        self._app = app
        self._screens = screens
        self._statics = statics
        self._looks = looks
        self._door = door
        self._settings = settings
        self._canary = canary
        self._source = source
        self._room = Room.waiting(settings)
        self._paths = [(Mapped(screen.path, _unused), screen) for screen in screens]

    def entries(self) -> tuple[DoorEntry, ...]:
        """Everything that can be asked for."""
        found = [
            DoorEntry("GET", "/static/{digest}/{name:path}", Role.NONE, self._file),
            DoorEntry("GET", "/live", Role.READ, self._live),
            DoorEntry("GET", "/livez", Role.NONE, self._alive),
            DoorEntry("GET", "/readyz", Role.NONE, self._ready),
        ]
        if self._door.login is not None:
            found += [
                DoorEntry("GET", "/login", Role.NONE, self._login_page),
                DoorEntry("POST", "/login", Role.NONE, self._enter),
                DoorEntry("POST", "/logout", Role.READ, self._leave),
            ]
        for screen in self._screens:
            found.append(DoorEntry("GET", screen.path, Role.READ, partial(self._shown, screen)))
            found += [
                DoorEntry("POST", each.path, each.role, partial(self._pressed, each))
                for each in screen.actions
            ]
        return tuple(found)

    # --- pages -------------------------------------------------------------------------------------

    async def _shown(self, screen: Screen, coming: Coming) -> Response:
        place = ScreenPlace(screen, _pairs(coming.request.path_params), _query(coming.request.url.query))
        seen = await self._looks.seen(place)
        response = self._door.page(screen.name, coming, {**seen.found, "screen": screen, "seen": seen})
        response.headers["server-timing"] = (
            f'db;desc="{seen.cost.statements} statements, {seen.cost.rows} rows"'
        )
        return response

    async def _live(self, coming: Coming) -> Response:
        place = self._place(coming.request.query_params.get("at", ""))
        response = StreamingResponse(self._events(place, coming), media_type="text/event-stream")
        response.headers["x-accel-buffering"] = "no"
        return response

    async def _events(self, place: ScreenPlace, coming: Coming) -> AsyncIterator[bytes]:
        """The live part of a page, whenever it was looked at again; until it is time to ask anew who asks."""
        host = coming.request.client.host if coming.request.client else None
        at = coming.request.query_params["at"]
        shown = Coming(_at(coming.request, at), coming.visitor, coming.base, coming.seed, coming.request_id)
        with self._room.seat(caller_of("", host)), self._looks.following(place) as followed:
            yield b": open\n\n"
            try:
                async with asyncio.timeout(self._settings.web_stream_s):
                    while not self._looks.leaving:
                        seen = await asyncio.shield(followed.next)
                        if seen is None:
                            return
                        yield self._part(place.screen, shown, seen)
            except TimeoutError:
                return  # the browser comes again, and is let in again

    def _part(self, screen: Screen, coming: Coming, seen: Seen) -> bytes:
        if seen.error is None:
            return self._door.live(screen, seen, coming)
        return event("trouble", telling.refusal(seen.error, coming.request_id).text)

    def _place(self, at: str) -> ScreenPlace:
        """The place of an address below ours.

        Raises:
            NoSuchRoute: no live screen is there.
        """
        parts = urlsplit(at if is_ours(at) else "")  # of another host it may be no address at all
        for mapped, screen in self._paths:
            found, scope = mapped.matches({"type": "http", "method": "GET", "path": parts.path})
            if found is Match.FULL and screen.live:
                return ScreenPlace(screen, _pairs(scope["path_params"]), _query(parts.query))
        raise NoSuchRoute("there is no live page there", "the address is another one", "open the page again")

    async def _file(self, coming: Coming) -> Response:
        params = coming.request.path_params
        found = self._statics.response(params["digest"], params["name"])
        if found is None:
            raise NoSuchRoute("there is no such file", "it is one of another release", "load the page again")
        return found

    async def _alive(self, _coming: Coming) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _coming: Coming) -> Response:
        """As of the gateway: whether pages are shown now, and the database answers."""
        if self._looks.leaving:
            return PlainTextResponse("the dashboard stops\n", 503)
        try:
            await self._app.engine.arun(store.clock())
        except DatabaseError:
            return PlainTextResponse("the database cannot be used now\n", 503)
        return PlainTextResponse("ok\n")

    # --- presses -----------------------------------------------------------------------------------

    async def _pressed(self, action: Action, coming: Coming) -> Response:
        form = await self._form(coming)
        request = coming.request
        given = {name: value for name, value in form.items() if name not in KEPT_OUT}
        forwarded = request.headers.getlist("x-forwarded-for")
        address = address_of(request.client, forwarded, self._settings)
        visitor, params = coming.visitor, request.path_params
        act = Act(self._app, visitor, params, given, address, coming.request_id, self._canary)
        try:
            told = await self._in_time(action, act)
        except FencerowError as error:
            return self._door.back(coming, form.get("back"), telling.refusal(error, coming.request_id))
        finally:
            self._source.pressed()
            self._looks.forget()
        kept = telling.KeptSentence(told.text, told.changed)
        return self._door.back(coming, told.to or form.get("back"), kept)

    async def _in_time(self, action: Action, act: Act) -> PressAnswer:
        """What became of a press.

        Raises:
            TooLate: the database took too long; what was wanted may be done, and of several things a part.
        """
        limit_s = self._settings.web_request_s
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                return await action.act(act)
        except TimeoutError:
            if not limit.expired():
                raise  # an error of ours that is one too
            raise TooLate(
                f"it was not done within {limit_s:g} s",
                "the database is slow, or gone; it may have been done, or a part of it",
                "look before you press again",
            ) from None

    async def _form(self, coming: Coming) -> dict[str, str]:
        check_origin(coming.request)
        form = await form_of(coming.request, timeout_s=self._settings.web_body_timeout_s)
        check_token(form, self._door.cookies.get(coming.request, "form"))
        return dict(form)

    # --- who asks ----------------------------------------------------------------------------------

    async def _login_page(self, coming: Coming) -> Response:
        to = coming.request.query_params.get("to", "/")
        return self._door.page("login", coming, {"to": to if is_ours(to) else "/", "refused": None})

    async def _enter(self, coming: Coming) -> Response:
        login = self._door.login
        assert login is not None
        form = await self._form(coming)
        to = form.get("to", "/")
        to = to if is_ours(to) else "/"
        response = RedirectResponse(f"{coming.base}{to}", 303)
        try:
            await login.enter(coming.request, form.get("token", ""), response)
        except FencerowError as error:
            refused = telling.refusal(error, coming.request_id).text
            status = 401 if isinstance(error, NotAuthenticated) else getattr(error, "status", 503)
            return self._door.page("login", coming, {"to": to, "refused": refused}, status=status)
        return response

    async def _leave(self, coming: Coming) -> Response:
        login = self._door.login
        assert login is not None
        await self._form(coming)
        response = RedirectResponse(f"{coming.base}/login", 303)
        login.leave(coming.request, response)
        return response


async def _unused(_request: Request) -> Response:
    return PlainTextResponse("")


def _pairs(params: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(params.items()))


def _query(query: str) -> tuple[tuple[str, str], ...]:
    """What stands behind the `?`: of a name that came twice the last one counts, and nothing is left out silently.

    Raises:
        InvalidInput: it is too long, or no text in UTF-8.
    """
    try:
        pairs = parse_qsl(query, errors="strict", max_num_fields=100)
    except ValueError:
        pairs = None
    if pairs is None or len(query) > QUERY_MAX or any("\0" in name + value for name, value in pairs):
        raise InvalidInput(
            "the address cannot be read", f"{QUERY_MAX} characters are taken", "shorten the search"
        )
    return tuple(sorted(dict(pairs).items()))


def _at(request: Request, at: str) -> Request:
    """The request as if it had asked for this address: its forms lead back there."""
    parts = urlsplit(at)
    base = request.scope.get("root_path", "").rstrip("/")
    return Request(
        {
            **request.scope,
            "path": f"{base}{parts.path}",
            "query_string": parts.query.encode("ascii", "ignore"),
        }
    )
