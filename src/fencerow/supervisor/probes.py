"""`/livez` and `/readyz` on a small port, for probes of Kubernetes and the like, and whatever pages wings have beside.

The answers come from a thread: a handler that blocks the event loop is for the worker's own watch, not for a probe.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from fencerow.core.errors import ConfigError
from fencerow.db.text import clean
from fencerow.supervisor.standing import WAITING, Standing

if TYPE_CHECKING:
    import ssl

log = logging.getLogger("fencerow.supervisor")

LOOPBACK = "127.0.0.1"
READ_S = 5.0
REQUEST_S = 5.0  # all of one, however slowly it comes
AT_ONCE_MAX = 32
BACKLOG = 512
ADDRESS = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[0-9.]+):)?(?P<port>[0-9]{1,5})")


class ProbeAddress(NamedTuple):
    """Where probes are answered."""

    host: str
    port: int


def parsed_address(text: str, option: str = "--health") -> ProbeAddress:
    """`8080` on the loopback address, `0.0.0.0:8080` on all of IPv4, `[::]:8080` on all.

    Raises:
        ConfigError: it is none of these.
    """
    found = ADDRESS.fullmatch(text)
    host = (found["host"] or LOOPBACK).strip("[]") if found else ""
    port = int(found["port"]) if found else 0
    try:
        ipaddress.ip_address(host)
    except ValueError:
        port = 0
    if not 0 < port < 65536:
        raise ConfigError(
            f"{option} is {ascii(text)[:60]}",
            "expected a port, or an address and a port",
            f"write {option} 8080 for this machine only, {option} 0.0.0.0:8080 for all that reach it",
        )
    return ProbeAddress(host, port)


def listening(address: ProbeAddress, option: str = "--bind") -> socket.socket:
    """A socket there. `option`: by which it was asked for.

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
            f"{option} cannot listen on {address.host} port {address.port}",
            error.strerror or str(error),
            "choose another port, or end who listens there",
        ) from None
    found.setblocking(False)
    return found


class ProbePage(NamedTuple):
    """What stands at a path besides the probes. `make` is called for each request, from its thread."""

    content_type: str
    make: Callable[[], bytes]


NO_PAGES: Mapping[str, ProbePage] = {}


class Probes:
    """Answers while its block lasts: 200 or 503, with the reasons in the body; and these pages, by their paths.

    `at`: where it listens; or a socket that listens already and stays open, for whoever answers there next.
    """

    def __init__(
        self,
        at: ProbeAddress | socket.socket,
        look: Callable[[], Standing],
        pages: Mapping[str, ProbePage] = NO_PAGES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._at = at
        self._tls = tls
        self._look = look
        self._pages = pages

    def __enter__(self) -> Self:
        """Raises:
        ConfigError: the port is taken, or the address is not this machine's.
        """
        bound = self._at.dup() if isinstance(self._at, socket.socket) else listening(self._at, "--health")
        self._server = _Server(bound, self._look, self._pages, self._tls)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="fencerow-probes", daemon=True
        )
        self._thread.start()
        paths = ", ".join(("/livez", "/readyz", *self._pages))
        log.info("%s port %d answers %s", *self._server.server_address[:2], paths)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def waiting_at(bound: socket.socket, tls: ssl.SSLContext | None = None) -> Probes:
    """At the door of what cannot be served yet: alive, and not ready."""
    return Probes(bound, lambda: WAITING, tls=tls)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        bound: socket.socket,
        look: Callable[[], Standing],
        pages: Mapping[str, ProbePage],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # the oldest first, with the time at which it came
        super().__init__(bound.getsockname(), partial(_Handler, look, pages), bind_and_activate=False)
        self.socket.close()  # one that the base class has made
        self.socket = bound
        self.socket.setblocking(True)  # whatever time-out the application gives to new ones
        if (
            tls is not None
        ):  # whoever opens a connection and says nothing must not keep others away: not in `accept`
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        # Whoever opens connections and says nothing, or a byte now and then, must neither cost a thread for each nor
        # keep a probe away: the oldest gives way.
        with self._lock:
            if len(self._open) >= AT_ONCE_MAX:
                self._end(next(iter(self._open)))
            self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)

    def service_actions(self) -> None:
        """Called by `serve_forever` every now and then: end what takes too long as a whole."""
        with self._lock:
            late = time.monotonic() - REQUEST_S
            for request in [each for each, came_at in self._open.items() if came_at < late]:
                self._end(request)

    def _end(self, request: socket.socket) -> None:
        """Under the lock. Its thread reads the end, and closes it."""
        del self._open[request]
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A probe that went away is nobody's concern."""


class _Handler(BaseHTTPRequestHandler):
    timeout = READ_S
    server_version = "fencerow"
    sys_version = ""

    def __init__(self, look: Callable[[], Standing], pages: Mapping[str, ProbePage], *given: Any) -> None:
        self._look = look
        self._pages = pages
        super().__init__(*given)  # it answers in here

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if (page := self._pages.get(path)) is not None:
            self._show(path, page)
            return
        standing = self._look()
        if path == "/livez":
            self._answer(standing.is_alive, ("; ".join(standing.faults) or standing.status))
        elif path == "/readyz":
            self._answer(standing.is_ready, standing.status)
        else:
            self._say(404, f"there are {', '.join(('/livez', '/readyz', *self._pages))}")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, is_well: bool, text: str) -> None:
        self._say(200 if is_well else 503, text)

    def _show(self, path: str, page: ProbePage) -> None:
        try:
            body = page.make()
        except Exception:
            log.exception("the page %s could not be made", path)
            self._say(500, "it could not be made; the log says why")
        else:
            self._send(200, page.content_type, body)

    def _say(self, code: int, text: str) -> None:
        self._send(code, "text/plain; charset=utf-8", f"{clean(text)}\n".encode())

    def _send(self, code: int, content_type: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Probes come every few seconds: the log is for other things."""
