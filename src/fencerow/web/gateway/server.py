"""The gateway as the main thing of a process: uvicorn, with bounds on what a connection may take.

uvicorn bounds neither how long a request's headers may take, nor how long a connection may say nothing at all, nor how
long an answer may wait to be read. So hundreds of callers that send a byte now and then, or read nothing of what they
asked for, would keep all places. `Bounded` ends such connections.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Protocol

import h11
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from fencerow.core.errors import ConfigError
from fencerow.supervisor.probes import Address
from fencerow.web.settings import WebSettings

log = logging.getLogger("fencerow.web")
theirs = logging.getLogger("uvicorn.error")

HEADERS_S = 10.0
KEEP_ALIVE_S = 15
REQUEST_LINE_BYTES_MAX = 8 * 1024
WRITE_S = 30.0
WRITE_BYTES_MIN = 32 * 1024
BACKLOG = 512


class Bounded(H11Protocol):
    """A connection that does not wait for its caller for ever.

    A request must have all its headers within `HEADERS_S` seconds of its begin. Of an answer that waits to be read, all
    or `WRITE_BYTES_MIN` must be taken in each `WRITE_S` seconds; a caller that takes less is cut off.
    """

    _until: asyncio.TimerHandle | None = None
    _unread: Unread | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unread = Unread(transport, self.loop)
        # `pause_writing` when a byte has to wait, not only at 64 KiB. At 0 asyncio's TLS would pause for ever.
        transport.set_write_buffer_limits(high=1)
        self._expect()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is not None:
            self._unread.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.end()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        if self._unread is not None:
            self._unread.end()
        super().connection_lost(exc)

    def _expect(self) -> None:
        """Start the clock where a request is to come or has begun, and stop it where its headers are through."""
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._until is None:
            self._until = self.loop.call_later(HEADERS_S, self._late)

    def _late(self) -> None:
        self._until = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()

    def _forget(self) -> None:
        if self._until is not None:
            self._until.cancel()
            self._until = None


class Unread:
    """The clock of what waits in a connection to be read: it ends a connection whose caller takes too little."""

    def __init__(self, transport: asyncio.WriteTransport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = 0  # bytes, when the clock was looked at last

    def begin(self) -> None:
        """From now on something waits."""
        if self._timer is None:
            self._waiting = self._transport.get_write_buffer_size()
            self._timer = self._loop.call_later(WRITE_S, self._look)

    def end(self) -> None:
        """Nothing waits any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        left = self._transport.get_write_buffer_size()
        if self._waiting - left < WRITE_BYTES_MIN:
            log.info("a caller was cut off who took less than %d bytes in %g s", WRITE_BYTES_MIN, WRITE_S)
            self._transport.abort()  # `close` would wait for the reader
        else:
            self.begin()


def listening(address: Address) -> socket.socket:
    """A socket there.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address.host, address.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise ConfigError(
            f"--bind cannot listen on {address.host} port {address.port}",
            error.strerror or str(error),
            "choose another port, or end who listens there",
        ) from None
    found.setblocking(False)
    return found


class Serves(Protocol):
    """What a server serves: an ASGI application that is told when it shall leave, and closed at the end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def leave(self) -> None:
        """Begin nothing new, and end what lasts. It may be repeated."""
        ...

    async def aclose(self) -> None:
        """End what it does beside requests."""
        ...


class Server:
    """Serves until told to leave: unready first, then requests end, then the connections."""

    def __init__(self, served: Serves, settings: WebSettings, *, tls: ssl.SSLContext | None = None) -> None:
        self._served = served
        self._settings = settings
        if theirs.level == logging.NOTSET:
            # It tells of its process and of CTRL+C, and by a line for each request that is no HTTP strangers could fill
            # the log.
            theirs.setLevel(logging.ERROR)
        config = uvicorn.Config(
            served,
            http=Bounded,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            limit_concurrency=settings.web_connections_max,
            timeout_graceful_shutdown=int(settings.web_drain_s) or 1,
            # h11 counts the request line and the headers together, and answers plain text: what is within this is
            # judged by `check_headers`.
            h11_max_incomplete_event_size=settings.web_headers_bytes_max + REQUEST_LINE_BYTES_MAX,
        )
        config.load()
        config.ssl = tls
        self._uvicorn = uvicorn.Server(config)
        self._leave = asyncio.Event()

    async def run(self, sockets: list[socket.socket]) -> None:
        """Serve on these sockets until `leave` was called."""
        # Signals are the command's: uvicorn's own way to take them raises them again at the end.
        serving = asyncio.ensure_future(self._uvicorn._serve(sockets))  # pyright: ignore[reportPrivateUsage]
        leaving = asyncio.ensure_future(self._leave.wait())
        await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            self._served.leave()
            log.info("the gateway stops: it takes no new requests, and %d are under way", self._under_way())
            # Who balances load learns from /readyz that nothing is served here any more, before the door is closed.
            await asyncio.sleep(self._settings.web_unready_s)
            self._uvicorn.should_exit = True
        leaving.cancel()
        try:
            await serving
        finally:
            await self._served.aclose()
        log.info("the gateway has stopped")

    def _under_way(self) -> int:
        return len(self._uvicorn.server_state.tasks)

    def leave(self) -> None:
        """Begin to stop; in this event loop. A second call ends what is still under way."""
        if self._leave.is_set():
            self._uvicorn.should_exit = True
            self._uvicorn.force_exit = True
        self._leave.set()
