"""The dashboard as an ASGI application that runs alone or inside another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route as Mapped
from starlette.types import Receive, Scope, Send

from fencerow.app import App
from fencerow.doctor.examine import examine
from fencerow.web.dashboard.also import Also
from fencerow.web.dashboard.beat import LIVE_S
from fencerow.web.dashboard.canary import Canary
from fencerow.web.dashboard.cost import Cost
from fencerow.web.dashboard.door import Answers, Door, DoorEntry
from fencerow.web.dashboard.guard import Cookies
from fencerow.web.dashboard.login import Login
from fencerow.web.dashboard.looks import LOOK_S, Looks, ScreenPlace
from fencerow.web.dashboard.pages import Pages
from fencerow.web.dashboard.problems import Problems
from fencerow.web.dashboard.redacting import Declared, Redact, Redactor
from fencerow.web.dashboard.roles import Authorize, Role
from fencerow.web.dashboard.screen import Look
from fencerow.web.dashboard.screens import all_screens
from fencerow.web.dashboard.serving import Serving
from fencerow.web.dashboard.source import Source
from fencerow.web.dashboard.statics import Statics
from fencerow.web.dashboard.traffic import KeptPictures
from fencerow.web.reading.origins import check_settings
from fencerow.web.settings import WebSettings


class Dashboard:
    """The dashboard of one app, as an ASGI application: mount it where you like.

    `authorize` says who asks, from the request: a `Visitor` with a role (none, read, act, admin). Without it visitors
    log in with an API token. `read_only`: nobody may do more than look, whatever their role; so it is until you say
    otherwise. `redact`: given the name of a job and its arguments, result or metadata, it returns what shall be shown.
    `secured`: browsers come over TLS; None is by the request. `replica`: the URL of a standby to read from, by default
    that of `web_replica_url`. `also`: screens of your own beside ours. `jobs`: the declared jobs by whose types secrets
    are hidden, by default those of `app`. It opens nothing before the first request and
    needs no lifespan. `leave()` ends the pages that are kept live, `aclose()` what it does beside requests; the app
    stays open.

    Raises:
        ConfigError: `web_hosts`, `web_proxies` or `web_replica_url` cannot be understood.
    """

    def __init__(
        self,
        app: App,
        *,
        authorize: Authorize | None = None,
        read_only: bool = True,
        redact: Redact | None = None,
        secured: bool | None = None,
        replica: str | None = None,
        live_s: float = LIVE_S,
        look_s: float = LOOK_S,
        also: Also | None = None,
        jobs: Mapping[str, Declared] | None = None,
    ) -> None:
        settings = WebSettings.of(app.config)
        check_settings(settings)
        screens, statics, cookies = (
            all_screens(() if also is None else also.screens),
            Statics(),
            Cookies(secured=secured),
        )
        self._app, self._redactor = app, Redactor(redact, app.jobs if jobs is None else jobs)
        self._problems = Problems(partial(examine, app.config, app.checks()))
        self._canary, self._kept = Canary(), KeptPictures()
        self._source = Source(settings, app.config, lambda: app.engine, replica)
        self._looks = Looks(self._look, live_s=live_s, look_s=look_s)
        self._login = None if authorize is not None else Login(app, settings, cookies)
        self._door = Door(
            settings=settings,
            authorize=authorize or _by(self._login),
            login=self._login,
            read_only=read_only,
            cookies=cookies,
            pages=Pages(screens, statics, None if also is None else also.package),
        )
        serving = Serving(
            app, screens, statics, self._looks, self._door, settings, self._canary, self._source
        )
        self.entries = (*serving.entries(), *(() if also is None else also.entries()))
        answers = Answers(self._door)
        self._asgi = Starlette(
            routes=[_mapped(path, of_path, self._door) for path, of_path in _by_path(self.entries).items()],
            exception_handlers={404: answers.missing, 405: answers.missing},
        )
        self._asgi.router.redirect_slashes = False  # it would lead to whatever Host was sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._asgi(scope, receive, send)

    def leave(self) -> None:
        """End the pages that are kept live. It may be repeated."""
        self._looks.leave()

    async def aclose(self) -> None:
        """End what it does beside requests. The app stays open."""
        self.leave()
        await self._looks.aclose()
        await self._problems.aclose()
        await self._canary.aclose()
        await self._source.aclose()
        if self._login is not None:
            await self._login.aclose()

    def _look(self, place: ScreenPlace, cost: Cost) -> Look:
        return Look(
            self._app,
            dict(place.params),
            dict(place.query),
            cost,
            self._problems,
            self._redactor,
            self._canary,
            self._kept,
            self._source,
        )


def _by(login: Login | None) -> Authorize:
    assert login is not None
    return login.visitor


def _by_path(entries: Sequence[DoorEntry]) -> dict[str, dict[str, DoorEntry]]:
    found: dict[str, dict[str, DoorEntry]] = {}
    for entry in entries:
        found.setdefault(entry.path, {})[entry.method] = entry
    return found


def _mapped(path: str, of_path: dict[str, DoorEntry], door: Door) -> Mapped:
    async def answer(request: Request) -> object:
        method = "GET" if request.method == "HEAD" else request.method
        return await door.answer(of_path[method], request)

    return Mapped(path, answer, methods=list(of_path))


__all__ = ["Dashboard", "Role"]
