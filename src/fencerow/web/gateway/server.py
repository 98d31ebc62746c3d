"""The gateway as the main thing of a process: uvicorn, with connections that are bounded in number and in time."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import socket
import ssl
from typing import Protocol

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from fencerow.supervisor.probes import BACKLOG
from fencerow.web.gateway.connection import Bounded
from fencerow.web.gateway.places import Places
from fencerow.web.settings import WebSettings

log = logging.getLogger("fencerow.web")
theirs = logging.getLogger("uvicorn.error")

REQUEST_LINE_BYTES_MAX = 8 * 1024
OTHER_FILES = (
    256  # what a process may open beside connections: the database, its own files, TLS that is begun
)
TLS_CLOSED_S = 5.0


async def settle() -> None:
    """Before the first request of a process that only serves: let the garbage collector pass over what is there by now.

    A full collection looks at everything while nobody is served, a tenth of a second where all of a process counts. It
    comes when enough new objects have stayed, such as those of hundreds of connections.
    """
    await run_in_threadpool(
        gc.collect
    )  # and so what Starlette needs for streams is loaded before the first one
    gc.freeze()


class Serves(Protocol):
    """What a server serves: an ASGI application that is told when it shall leave, and closed at the end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def leave(self) -> None:
        """Begin nothing new, and end what lasts. It may be repeated."""
        ...

    async def aclose(self) -> None:
        """End what it does beside requests."""
        ...


def connections_max(settings: WebSettings) -> int:
    """How many connections this process can serve: as many as the settings say, if it may open so many files.

    It raises its own limit of open files as far as it may; below that, a warning says what lacks.
    """
    wanted = settings.web_connections_max + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return settings.web_connections_max
    most = max(1, soft - OTHER_FILES)
    log.warning(
        "web_connections_max is %d, but this process may open %d files: it serves %d connections; raise the limit "
        "(`ulimit -n`, `LimitNOFILE=` of systemd)",
        *(settings.web_connections_max, soft, most),
    )
    return most


class _Uvicorn(uvicorn.Server):
    """uvicorn with our connections, and with bounds for TLS, which it leaves at a minute."""

    def __init__(self, config: uvicorn.Config, places: Places) -> None:
        super().__init__(config)
        self._places = places

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on these sockets."""
        loop, tls = asyncio.get_running_loop(), self.config.ssl
        self.servers = [
            await loop.create_server(
                lambda: Bounded(self.config, self.server_state, self._places),
                sock=each,
                ssl=tls,
                backlog=BACKLOG,
                ssl_handshake_timeout=self._places.settings.web_headers_timeout_s if tls else None,
                ssl_shutdown_timeout=TLS_CLOSED_S if tls else None,
            )
            for each in sockets or []
        ]
        self.started = True

    def cut_off(self) -> None:
        """End the connections that are left when the time to drain is over."""
        for each in list(self.server_state.connections):
            each.transport.abort()


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
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=max(1, round(settings.web_idle_timeout_s)),
            timeout_graceful_shutdown=int(settings.web_drain_s) or 1,
            # h11 counts the request line and the headers together, and answers plain text: what is within this is
            # judged by `check_headers`.
            h11_max_incomplete_event_size=settings.web_headers_bytes_max + REQUEST_LINE_BYTES_MAX,
        )
        config.load()
        config.ssl = tls
        self._places = Places(settings, connections_max(settings))
        self._uvicorn = _Uvicorn(config, self._places)
        self._leave = asyncio.Event()

    async def run(self, sockets: list[socket.socket]) -> None:
        """Serve on these sockets until `leave` was called."""
        # Signals are the command's: uvicorn's own way to take them raises them again at the end.
        serving = asyncio.ensure_future(self._uvicorn._serve(sockets))  # pyright: ignore[reportPrivateUsage]
        leaving = asyncio.ensure_future(self._leave.wait())
        await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            self._served.leave()
            log.info("the server stops: it takes no new requests, and %d are under way", self._under_way())
            # Who balances load learns from /readyz that nothing is served here any more, before the door is closed.
            await asyncio.sleep(self._settings.web_unready_s)
            self._uvicorn.should_exit = True
        leaving.cancel()
        try:
            await serving
        finally:
            self._uvicorn.cut_off()
            self._places.cuts.close()
            await self._served.aclose()
        log.info("the server has stopped")

    def _under_way(self) -> int:
        return len(self._uvicorn.server_state.tasks)

    def leave(self) -> None:
        """Begin to stop; in this event loop. A second call ends what is still under way."""
        if self._leave.is_set():
            self._uvicorn.should_exit = True
            self._uvicorn.force_exit = True
        self._leave.set()
