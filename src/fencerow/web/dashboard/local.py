"""A dashboard for whoever sits at this machine, in a thread of a program that does something else."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from fencerow.app import App
from fencerow.core.errors import ConfigError
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
        self._socket = _listening(self.port)
        self.url = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}/{self.secret}/"
        self._stop: Callable[[], None] = lambda: None
        self._begun = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="fencerow-dashboard", daemon=True
        )
        self._thread.start()
        self._begun.wait(STOP_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._thread.join(STOP_S)  # a browser that reads nothing must not keep the program

    async def _serve(self) -> None:
        app, board = self.make()
        settings = WebSettings.of(app.config)
        server = Server(_Hidden(board, self.secret), settings)
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(server.leave)
            loop.call_soon_threadsafe(server.leave)  # at once: nobody waits for what it would still answer

        self._stop = stop
        self._begun.set()
        try:
            await server.run([self._socket])
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
