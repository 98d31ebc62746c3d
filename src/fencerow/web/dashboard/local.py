"""A dashboard for whoever sits at this machine, in a thread of a program that does something else."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from fencerow.app import App
from fencerow.core.errors import ConfigError
from fencerow.db.loop_thread import LoopThread
from fencerow.supervisor.probes import ProbeAddress, listening
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings

LOOPBACK = "127.0.0.1"
STOP_S = 10.0


@dataclass
class LocalDashboard:
    """Serves a dashboard while its block lasts.

    `make`: the app, which is closed at the end, and the dashboard over it; called in the thread that serves. Others on
    this machine can reach the port, and nobody asks for a token. So the address has a secret in it. `port`: the one
    that is wanted; another one if it is taken.
    """

    make: Callable[[], tuple[App, Dashboard]]
    port: int = 0
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    url: str = ""

    def __enter__(self) -> Self:
        """Serve.

        Raises:
            ConfigError: no port can be had on this machine. What `make` raises is raised here, too.
        """
        self._socket = _listening(self.port)
        self.url = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}/{self.secret}/"
        self._beside = LoopThread(self._serving(), None, "dashboard")
        try:
            self._beside.enter()
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A browser that reads nothing must not keep the program.
        self._beside.leave(now=error is not None, within_s=STOP_S)

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        app, board = self.make()
        try:
            server = Server(_Hidden(board, self.secret), WebSettings.of(app.config))
            serving = asyncio.ensure_future(server.run([self._socket]))
            yield
            server.leave()
            server.leave()  # at once: nobody waits for what it would still answer
            await serving
        finally:
            await app.aclose()


class _Hidden:
    """The dashboard below a path that nobody guesses."""

    def __init__(self, board: Dashboard, secret: str) -> None:
        self._board = board
        self._asgi = Starlette(routes=[Mount(f"/{secret}", board)])
        self._asgi.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._asgi(scope, receive, send)

    def leave(self) -> None:
        self._board.leave()

    async def aclose(self) -> None:
        await self._board.aclose()


def _listening(port: int) -> socket.socket:
    if port:
        try:
            return listening(ProbeAddress(LOOPBACK, port))
        except ConfigError:
            pass  # somebody else has it, and any other does as well
    return listening(ProbeAddress(LOOPBACK, 0))


def open_browser(url: str) -> bool:
    """Show it in the browser of whoever sits here, if somebody does: at a terminal, and with a display."""
    has_display = sys.platform == "darwin" or any(
        os.environ.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not sys.stdout.isatty() or not has_display or os.environ.get("SSH_CONNECTION"):
        return False
    return webbrowser.open(url)
