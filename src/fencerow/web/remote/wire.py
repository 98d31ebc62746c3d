"""The connections of a remote client: one pool for threads, and one for each event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import httpx2
import msgspec

from fencerow.core.errors import FencerowError, InvalidInput, OutcomeUnknown, Unavailable
from fencerow.version import __version__
from fencerow.web.remote.exchange import Exchange, Reply
from fencerow.web.remote.refusals import refused

if TYPE_CHECKING:
    import ssl

CONNECT_S = 5.0
ANSWER_S = 35.0  # a little more than a gateway gives itself by default
# Nothing of a request has left this machine.
UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class Wire:
    """Sends requests to one gateway."""

    def __init__(self, url: str, token: str, *, verify: ssl.SSLContext | bool = True) -> None:
        self._made: dict[str, Any] = {
            "base_url": checked_url(url),
            "headers": {"authorization": f"Bearer {token}", "user-agent": f"fencerow/{__version__}"},
            "verify": verify,
            "follow_redirects": False,
            "trust_env": False,
        }
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()

    def send(self, exchange: Exchange) -> Reply:
        """The answer to a request, from this thread.

        Raises:
            Unavailable: it was not sent. OutcomeUnknown: it may have been, and the answer was lost.
        """
        client = self._of_threads()
        try:
            return _reply(client.request(**_given(exchange)))
        except httpx2.TransportError as error:
            raise _lost(error) from None

    async def asend(self, exchange: Exchange) -> Reply:
        """`send` in this event loop."""
        client = self._of_loop()
        try:
            return _reply(await client.request(**_given(exchange)))
        except httpx2.TransportError as error:
            raise _lost(error) from None

    @contextmanager
    def lines(self, exchange: Exchange) -> Iterator[Iterator[str]]:
        """The lines of an answer as they come, in this thread.

        Raises:
            Unavailable, OutcomeUnknown: it was not sent, or ended in the middle. FencerowError: it is a refusal.
        """
        try:
            with self._of_threads().stream(**_given(exchange)) as response:
                if response.status_code >= 400:
                    raise _refusal(response, response.read())
                yield response.iter_lines()
        except httpx2.TransportError as error:
            raise _lost(error) from None

    @asynccontextmanager
    async def alines(self, exchange: Exchange) -> AsyncIterator[AsyncIterator[str]]:
        """`lines` in this event loop."""
        try:
            async with self._of_loop().stream(**_given(exchange)) as response:
                if response.status_code >= 400:
                    raise _refusal(response, await response.aread())
                yield response.aiter_lines()
        except httpx2.TransportError as error:
            raise _lost(error) from None

    def _of_threads(self) -> httpx2.Client:
        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(**self._made)
            return self._client

    def _of_loop(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._of_loops.get(loop)
        if client is None:
            client = self._of_loops[loop] = httpx2.AsyncClient(**self._made)
        return client

    def close(self) -> None:
        """Close the connections of threads. A later use opens them again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close those of this event loop, and those of threads."""
        client = self._of_loops.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
        self.close()


def checked_url(url: str) -> str:
    """The address of a gateway, without a slash at its end.

    Raises:
        InvalidInput: it is none.
    """
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError):
        parsed = httpx2.URL("")
    if (
        parsed.scheme not in ("http", "https")
        or not parsed.host
        or parsed.userinfo
        or parsed.query
        or parsed.fragment
    ):
        raise InvalidInput(
            "the gateway's address cannot be used",
            "expected http:// or https://, a host, and perhaps a port and a path",
            "for example https://jobs.example.com or http://127.0.0.1:8080",
        )
    return url.rstrip("/")


def _given(exchange: Exchange) -> dict[str, Any]:
    body = None if exchange.document is None else msgspec.json.encode(exchange.document)
    headers = dict(exchange.headers)
    if body is not None:
        headers["content-type"] = "application/json"
    return {
        "method": exchange.method,
        "url": exchange.path,
        "params": dict(exchange.query) or None,
        "content": body,
        "headers": headers,
        "timeout": _patience(exchange),
    }


def _patience(exchange: Exchange) -> httpx2.Timeout:
    if exchange.bound_s is not None:
        return httpx2.Timeout(exchange.bound_s, connect=min(CONNECT_S, exchange.bound_s))
    return httpx2.Timeout(ANSWER_S + exchange.wait_s, connect=CONNECT_S)


def _reply(response: httpx2.Response) -> Reply:
    return Reply(
        response.status_code,
        {name.lower(): value for name, value in response.headers.items()},
        response.content,
    )


def _refusal(response: httpx2.Response, content: bytes) -> FencerowError:
    return refused(
        response.status_code, {name.lower(): value for name, value in response.headers.items()}, content
    )


def _lost(error: httpx2.TransportError) -> Unavailable | OutcomeUnknown:
    why = f"{type(error).__name__}: {error}"[:200]
    if isinstance(error, UNSENT):
        return Unavailable("the gateway cannot be reached", why, "check its address, and whether it runs")
    return OutcomeUnknown("the gateway's answer was lost", why, "repeat it under the same key or id, or look")
