"""What stands before every page and press, in this order: is the host ours, how often, who asks, may they.

Each step refuses with an error of ours, and every error becomes a page that tells no host, role, file or traceback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fencerow.core.errors import FencerowError
from fencerow.core.model.ids import new_id
from fencerow.db.text import storable
from fencerow.web.dashboard import telling
from fencerow.web.dashboard.guard import ALWAYS, Cookies, form_token, new_seed
from fencerow.web.dashboard.live import LiveParts
from fencerow.web.dashboard.login import Login
from fencerow.web.dashboard.looks import Seen
from fencerow.web.dashboard.pages import Pages, Visit
from fencerow.web.dashboard.roles import NOBODY, Authorize, Role, Visitor
from fencerow.web.dashboard.screen import Screen
from fencerow.web.errors import NoSuchRoute, NotAllowed, NotAuthenticated
from fencerow.web.gateway.problem import problem_of, retry_after_of
from fencerow.web.reading import headers as read
from fencerow.web.reading.addresses import check_address
from fencerow.web.reading.body import Gone
from fencerow.web.reading.callers import caller_of
from fencerow.web.reading.origins import address_of, check_host
from fencerow.web.reading.rates import Rates
from fencerow.web.settings import WebSettings

log = logging.getLogger("fencerow.web")

SEED = "form"
BACK_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Coming:
    """A request that has passed the door."""

    request: Request
    visitor: Visitor
    base: str
    seed: str
    request_id: str

    @property
    def at(self) -> str:
        """Its address below the dashboard's own path."""
        url = self.request.url
        path = url.path.removeprefix(self.base) or "/"
        return f"{path}?{url.query}" if url.query else path


@dataclass(frozen=True, slots=True)
class DoorEntry:
    """One method of one path. `role`: the least that a visitor needs; NONE is open to all."""

    method: str
    path: str
    role: Role
    answer: Callable[[Coming], Awaitable[Response]]


class Door:
    """Lets in who may, and turns whatever goes wrong into a page."""

    def __init__(
        self,
        *,
        settings: WebSettings,
        authorize: Authorize,
        login: Login | None,
        read_only: bool,
        cookies: Cookies,
        pages: Pages,
    ) -> None:
        self.settings = settings
        self.login = login
        self.cookies = cookies
        self._authorize = authorize
        self._read_only = read_only
        self._pages = pages
        self._live = LiveParts(pages)
        self._rates = Rates.of(settings)

    async def answer(self, entry: DoorEntry, request: Request) -> Response:
        """The answer to a request, whatever happens."""
        coming = self._coming(request, NOBODY)
        try:
            coming = self._coming(request, await self._visitor(entry, request))
            response = await entry.answer(coming)
        except Gone:
            response = Response(status_code=400)  # nobody is there to read it
        except Exception as error:
            response = self.refusal(error, coming)
        return self._finished(response, coming)

    def visit(self, coming: Coming, *, take: bool = False) -> Visit:
        """Who sees a page. `take`: what became of the press before is told on it."""
        kept = telling.unpacked(self.cookies.get(coming.request, telling.COOKIE)) if take else None
        return Visit(
            visitor=coming.visitor,
            base=coming.base,
            at=coming.at,
            form=form_token(coming.seed),
            told=None if kept is None else kept.told,
            refused=kept is not None and kept.refused,
            may_leave=self.login is not None and coming.visitor.role > Role.NONE,
            read_only=self._read_only,
        )

    def page(self, name: str, coming: Coming, found: Mapping[str, Any], *, status: int = 200) -> Response:
        """A page of a template, on which the press before is told."""
        visit = self.visit(coming, take=True)
        response = HTMLResponse(self._pages.page(name, visit, found), status)
        if visit.told is not None:
            self.cookies.remove(coming.request, response, telling.COOKIE)
        return response

    def live(self, screen: Screen, seen: Seen, coming: Coming) -> bytes:
        """The live part of a page, as an event of its stream."""
        return self._live.event(screen, seen, self.visit(coming))

    def back(self, coming: Coming, to: str | None, kept: telling.KeptSentence) -> Response:
        """Lead to a page of ours, and tell there what became of a press."""
        place = to if to is not None and is_ours(to) else "/"
        response = RedirectResponse(f"{coming.base}{place}", 303)
        self.cookies.set(
            coming.request, response, telling.COOKIE, telling.packed(kept), kept_s=telling.KEPT_S
        )
        return response

    def refusal(self, error: Exception, coming: Coming) -> Response:
        """The page of an error. What is no error of ours is told to the log alone."""
        if not isinstance(error, FencerowError):
            log.error(
                "the dashboard met %s (request %s)", type(error).__name__, coming.request_id, exc_info=error
            )
            error = FencerowError("the dashboard met a fault of its own")
        problem = problem_of(error, coming.request_id)
        if problem.status >= 500:
            log.warning("request %s of the dashboard: %s", coming.request_id, error)
        found = {"problem": problem, "title": HTTPStatus(problem.status).phrase}
        response = HTMLResponse(self._pages.page("error", self.visit(coming), found), problem.status)
        if (wait_s := retry_after_of(error, problem.status)) is not None:
            response.headers["retry-after"] = str(wait_s)
        return response

    async def _visitor(self, entry: DoorEntry, request: Request) -> Visitor:
        """Who asks, if they may.

        Raises:
            NotAuthenticated: nobody that we know. NotAllowed: their role is too low.
            InvalidRequest, TooManyRequests: the host is not ours, the address is no text, or they come too often.
        """
        read.check_headers(request.scope["headers"], self.settings)
        check_address(request.scope)
        check_host(request.headers.getlist("host"), self.settings)
        address = address_of(request.client, request.headers.getlist("x-forwarded-for"), self.settings)
        self._rates.check(caller_of("", address), asyncio.get_running_loop().time())
        if entry.role is Role.NONE:
            return NOBODY
        visitor = await self._authorize(request)
        # A host takes the name from wherever its people are kept. Pages show it, and a change is stored with it.
        visitor = Visitor(storable(str(visitor.name or "")).strip(), visitor.role)
        if visitor.role is Role.NONE:
            raise _nobody()
        if self._read_only:
            visitor = Visitor(visitor.name, min(visitor.role, Role.READ))
        if visitor.role < entry.role:
            raise _too_low(visitor.role, entry.role, read_only=self._read_only)
        return visitor

    def _coming(self, request: Request, visitor: Visitor) -> Coming:
        seed = self.cookies.get(request, SEED) or getattr(request.state, "seed", None) or new_seed()
        request.state.seed = seed
        base = request.scope.get("root_path", "").rstrip("/")
        return Coming(request, visitor, base, seed, new_id())

    def _finished(self, response: Response, coming: Coming) -> Response:
        request = coming.request
        for name, value in ALWAYS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("cache-control", "no-store")
        response.headers["x-request-id"] = coming.request_id
        is_page = "text/html" in response.headers.get("content-type", "")
        if is_page and self.cookies.get(request, SEED) is None:
            self.cookies.set(request, response, SEED, coming.seed)
        if response.status_code == 401 and self.login is not None and request.method in ("GET", "HEAD"):
            return self._to_login(response, coming)
        return response

    def _to_login(self, refused: Response, coming: Coming) -> Response:
        query = urlencode({"to": coming.at}) if coming.at != "/" else ""
        response = RedirectResponse(f"{coming.base}/login{'?' + query if query else ''}", 303)
        for name, value in refused.headers.items():
            if name not in ("content-length", "content-type", "set-cookie", "location"):
                response.headers.setdefault(name, value)
        return response


class Answers:
    """Answers where no entry has the path, or none the method."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def missing(self, request: Request, error: Exception) -> Response:
        """The page for it, for whoever may see pages at all."""
        status = int(getattr(error, "status_code", 404))

        async def raised(_coming: Coming) -> Response:
            raise NoSuchRoute(
                "there is no such page",
                "the address is another one",
                "go on from the overview",
                status=status,
            )

        return await self._door.answer(DoorEntry(request.method, "", Role.NONE, raised), request)


def is_ours(place: str) -> bool:
    """Whether this leads to a page of ours: a path, and nothing that a browser takes for another host."""
    plain = all(" " < each < "\x7f" and each != "\\" for each in place)
    return plain and place.startswith("/") and not place.startswith("//") and len(place) <= BACK_MAX


def _nobody() -> NotAuthenticated:
    return NotAuthenticated(
        "nobody is logged in", "or what let you in is over", "log in, or ask whoever runs this to let you in"
    )


def _too_low(role: Role, wanted: Role, *, read_only: bool) -> NotAllowed:
    why = (
        "this dashboard only shows" if read_only else f"your role is {role.word}, and it needs {wanted.word}"
    )
    return NotAllowed("you may not do this", why, "ask whoever runs it")
