"""A TCP proxy in front of PostgreSQL that breaks a connection at an exact message, as networks do at any.

    with FaultProxy(port) as proxy:
        proxy.cut_before("COMMIT")          # the server never sees it: nothing is stored
        proxy.cut_after_reply_to("COMMIT")  # it is done, and nobody hears of it

A text is looked for in the simple and extended queries that a client sends; each cut happens once.
The listening socket stays, so the client can come back through the proxy. TLS is not spoken.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

READY = b"Z"  # the server has answered everything so far
QUERY, PARSE = b"Q", b"P"
SSL_REQUEST = 80877103
GSS_REQUEST = 80877104


class FaultProxy:
    """Listens on 127.0.0.1 and passes everything on to a server's port, until it is told to cut."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._before: str | None = None
        self._after: str | None = None
        self._links: set[_Link] = set()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._refusing = False
        self.cuts = 0

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cut_before(self, text: str) -> None:
        """Break the next connection that sends a query with this text; the server does not see the query."""
        with self._lock:
            self._before = text

    def cut_after_reply_to(self, text: str) -> None:
        """Let the next query with this text be done and answered, and break the connection before the answer."""
        with self._lock:
            self._after = text

    def refuse_new(self) -> None:
        """Let go on what is connected, and take nobody in any more: the server is about to be away."""
        self._refusing = True

    def cut_all(self) -> None:
        """Break every connection now."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.cut()

    def close(self) -> None:
        """Stop listening and break what is left."""
        self._closed = True
        # shutdown wakes the thread that waits in accept; close alone does not on Linux.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()
        for thread in self._threads:
            thread.join(5)

    # --- what links ask ----------------------------------------------------------------------------

    def takes_before(self, text: str) -> bool:
        """Whether a query is the one to be kept from the server; true once."""
        with self._lock:
            if self._before is None or self._before not in text:
                return False
            self._before = None
            self.cuts += 1
            return True

    def takes_after(self, text: str) -> bool:
        """Whether a query is the one whose answer is to be kept from the client; true once."""
        with self._lock:
            if self._after is None or self._after not in text:
                return False
            self._after = None
            self.cuts += 1
            return True

    def forget(self, link: _Link) -> None:
        with self._lock:
            self._links.discard(link)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            try:
                server = socket.create_connection(self._target, 5)
            except OSError:
                client.close()  # the server is away: the client sees a broken connection, as it would without us
                continue
            server.settimeout(None)
            link = _Link(self, client, server)
            with self._lock:
                self._links.add(link)
            self._start(link.pass_queries)
            self._start(link.pass_answers)

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name="fencerow-proxy", daemon=True)
        self._threads.append(thread)
        thread.start()


class _Link:
    """One client's connection: a thread passes its messages on, another the answers."""

    def __init__(self, proxy: FaultProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._withheld = False

    def pass_queries(self) -> None:
        try:
            self._pass_startup()
            while (message := _message(self._client)) is not None:
                text = message[5:].decode("utf-8", "replace") if message[:1] in (QUERY, PARSE) else ""
                if text and self._proxy.takes_before(text):
                    break
                if text and self._proxy.takes_after(text):
                    self._withheld = True
                self._server.sendall(message)
        except OSError:
            pass  # the other thread cut
        self.cut()

    def pass_answers(self) -> None:
        """Pass answers on, but for the one to be withheld: it is read to its end, so the server is through with it."""
        try:
            while (
                self._server.recv(1, socket.MSG_PEEK) == b"N"
            ):  # no TLS, no GSS: a single byte and no message
                self._client.sendall(self._server.recv(1))
            while (message := _message(self._server)) is not None:
                if not self._withheld:
                    self._client.sendall(message)
                elif message[:1] == READY:
                    break
        except OSError:
            pass
        self.cut()

    def cut(self) -> None:
        """Close both ends; doing it twice is harmless."""
        for end in (self._client, self._server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was closed already
            end.close()
        self._proxy.forget(self)

    def _pass_startup(self) -> None:
        """Startup messages have a length and no type; a request for TLS may come before the real one."""
        while True:
            head = _exactly(self._client, 8)
            if head is None:
                return
            size, code = struct.unpack("!II", head)
            rest = _exactly(self._client, size - 8) if size > 8 else b""
            self._server.sendall(head + (rest or b""))
            if code not in (SSL_REQUEST, GSS_REQUEST):
                return


def _message(source: socket.socket) -> bytes | None:
    """One whole message: type, length, body; None at the end of the connection."""
    head = _exactly(source, 5)
    if head is None:
        return None
    (size,) = struct.unpack("!I", head[1:])
    body = _exactly(source, size - 4) if size > 4 else b""
    return None if body is None else head + body


def _exactly(source: socket.socket, size: int) -> bytes | None:
    parts = []
    while size:
        part = source.recv(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
