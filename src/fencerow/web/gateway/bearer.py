"""Who asks, by the token in the `Authorization` header: the gateway's own way, where nobody gives another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request

from fencerow.core.client.base import ClientBase
from fencerow.web.reading import headers as read
from fencerow.web.settings import WebSettings
from fencerow.web.tokens.known import KnownTokens
from fencerow.web.tokens.scope import Grant

Authorize = Callable[[Request], Awaitable[Grant | None]]


class Bearer:
    """Asks the database who the bearer of a token is, and remembers it for a few seconds. For one event loop."""

    def __init__(self, client: Callable[[], ClientBase], settings: WebSettings) -> None:
        self._client = client
        self._settings = settings
        self._known: KnownTokens | None = None

    async def __call__(self, request: Request) -> Grant | None:
        """What the bearer may do; None: the request has no token that is good here.

        Raises:
            Unavailable, Busy, OutcomeUnknown: the database could not be asked. Nobody may pass then.
        """
        token = read.bearer_of(request.headers.getlist("authorization"))
        if token is None:
            return None
        if self._known is None:
            self._known = KnownTokens(self._client(), cache_s=self._settings.web_token_cache_s)
        return await self._known.grant_of(token)

    async def aclose(self) -> None:
        """Ask no more."""
        if self._known is not None:
            await self._known.aclose()
