"""Who visits a dashboard that stands alone: whoever brought an API token, which the browser keeps in a cookie."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fencerow.app import App
from fencerow.web.dashboard.guard import Cookies
from fencerow.web.dashboard.roles import NOBODY, Role, Visitor, role_of
from fencerow.web.errors import NotAllowed, NotAuthenticated
from fencerow.web.settings import WebSettings
from fencerow.web.tokens.known import KnownTokens

COOKIE = "session"
SESSION_S = 12 * 3600


class Login:
    """Asks the database who the bearer of a token is, and believes it for a few seconds. For one event loop.

    The cookie holds the token itself: no state is kept here, every process of ours knows it, and a token that is
    revoked or over ends its sessions. No script can read it, and no other site can send it.
    """

    def __init__(self, app: App, settings: WebSettings, cookies: Cookies) -> None:
        self._app = app
        self._settings = settings
        self._cookies = cookies
        self._known: KnownTokens | None = None

    async def visitor(self, request: Request) -> Visitor:
        """Who sent this request.

        Raises:
            Unavailable, Busy, OutcomeUnknown: the database could not be asked. Nobody may pass then.
        """
        token = self._cookies.get(request, COOKIE)
        return NOBODY if token is None else await self._bearer(token)

    async def enter(self, request: Request, token: str, response: Response) -> Visitor:
        """Begin a session.

        Raises:
            NotAuthenticated: nobody is known by this token. NotAllowed: it is good for nothing here.
        """
        visitor = await self._bearer(token)
        if not visitor.name:
            raise NotAuthenticated(
                "this token lets nobody in",
                "it is unknown, revoked or expired",
                "make one: fencerow tokens create NAME --scope read",
            )
        if visitor.role is Role.NONE:
            raise NotAllowed(
                "this token is good for nothing here",
                "it lacks the scope read, or is good for some queues only, and the pages show all",
                "make one: fencerow tokens create NAME --scope read",
            )
        self._cookies.set(request, response, COOKIE, token, kept_s=SESSION_S)
        return visitor

    def leave(self, request: Request, response: Response) -> None:
        """End the session in this browser. The token stays as it is."""
        self._cookies.remove(request, response, COOKIE)

    async def aclose(self) -> None:
        """Ask no more."""
        if self._known is not None:
            await self._known.aclose()

    async def _bearer(self, token: str) -> Visitor:
        if self._known is None:
            self._known = KnownTokens(self._app.client, cache_s=self._settings.web_token_cache_s)
        grant = await self._known.grant_of(token)
        return NOBODY if grant is None else Visitor(grant.name, role_of(grant))
