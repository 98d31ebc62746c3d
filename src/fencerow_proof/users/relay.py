"""Stands between an actor and PostgreSQL, and holds each of its statements until it is let go.

The seam is the wire, so every driver is stepped alike and the user's code runs as it is. What belongs to one
request (up to Sync, or one simple query) is one step.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from fencerow_proof.users.performer import Abandoned, Performer
from fencerow_proof.users.protocol import (
    BIND,
    CLOSE_STATEMENT,
    COLUMNS,
    DESCRIBE,
    ERROR,
    EXECUTE,
    KEY_DATA,
    NO_COLUMNS,
    PARAMETERS,
    PARSE,
    QUERY,
    READY,
    ROW,
    SYNC,
    Asked,
    Column,
    Reply,
    batches,
    error_fields,
    error_message,
    is_harmless,
)

PORT = 5432
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
GATHERED = frozenset({PARSE, BIND, DESCRIBE, EXECUTE, CLOSE_STATEMENT})
CANCELLED = "57014"
DEADLOCK = "40P01"


class Relay:
    """The server as one actor sees it: a socket in `folder`, which only its owner can reach."""

    def __init__(self, folder: Path, connect: Callable[[], socket.socket]) -> None:
        self.folder = folder
        self.performer: Performer | None = None  # who plays now
        self._connect = connect
        self._links: list[Link] = []
        self._lock = threading.Lock()
        self._closed = False
        folder.mkdir(mode=0o700)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(None)  # whatever time-out the application gives to new ones
        self._listener.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listener.listen(16)
        threading.Thread(target=self._accept, name="fencerow-relay", daemon=True).start()

    @property
    def pids(self) -> set[int]:
        """The server processes of the open connections."""
        with self._lock:
            return {link.pid for link in self._links if link.pid}

    def cut_all(self) -> None:
        """Break what is open; the server rolls back."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.cut()

    def close(self) -> None:
        self._closed = True
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept
        except OSError:
            pass  # some systems refuse it for a listening socket
        self._listener.close()
        self.cut_all()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
                server = self._connect()
            except OSError:
                return
            for end in (client, server):
                end.settimeout(None)  # a statement may take long, and a connection may rest
            link = Link(self, client, server)
            with self._lock:
                self._links.append(link)
            link.start()

    def forget(self, link: Link) -> None:
        with self._lock:
            if link in self._links:
                self._links.remove(link)


class Link:
    """One connection: two sockets, and a thread for each direction."""

    def __init__(self, relay: Relay, client: socket.socket, server: socket.socket) -> None:
        self.pid = 0
        self._relay = relay
        self._client = client
        self._server = server
        self._asked = Asked()
        # Those under way: what the server was made to run, if anything, and the columns it will answer with.
        self._requests: deque[tuple[str | None, list[Column]]] = deque()
        self._unanswered = False  # whether a flushed request still lacks its Sync
        self._was_open = False  # whether a transaction was open at the last reply
        self._lock = threading.Lock()
        self._over = False

    def start(self) -> None:
        for target in (self._pass_requests, self._pass_replies):
            threading.Thread(target=target, name="fencerow-relay", daemon=True).start()

    def cut(self) -> None:
        """Close both ends; twice is harmless."""
        with self._lock:
            if self._over:
                return
            self._over = True
        for end in (self._client, self._server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was closed by its other side
            end.close()
        self._relay.forget(self)

    # --- the two directions --------------------------------------------------------------------------

    def _pass_requests(self) -> None:
        try:
            self._pass_startup()
            gathered: list[bytes] = []
            texts: list[str] = []
            for messages in batches(self._client):
                for message in messages:
                    text = self._asked.read(message)
                    if text is not None:
                        texts.append(text)
                    gathered.append(message)
                    if message[:1] in GATHERED:
                        continue
                    self._request(gathered, texts, message[:1])
                    gathered, texts = [], []
        except (OSError, Abandoned):
            pass  # the other side is gone, or the play is over
        self.cut()

    def _request(self, gathered: list[bytes], texts: list[str], last: bytes) -> None:
        """Send what was gathered, as soon as the actor is let go."""
        performer = self._relay.performer
        text = "; ".join(texts) if texts else None
        meant = tuple(self._asked.meant)
        self._asked.meant.clear()
        if performer is not None:
            performer.said.update(meant)
        if performer is not None and text is not None and not is_harmless(text):
            performer.arrive(text, meant)
        if performer is not None and (text is not None or last in (QUERY, SYNC)) and not self._unanswered:
            self._requests.append((text, self._asked.bound))
            performer.sent()
        # A pipeline may flush and sync later: the server answers for both with one ReadyForQuery.
        self._unanswered = text is not None and last not in (QUERY, SYNC)
        self._server.sendall(b"".join(gathered))

    def _pass_replies(self) -> None:
        answer = Reply()
        try:
            for messages in batches(self._server):
                out = []
                for message in messages:
                    kind = message[:1]
                    if kind == KEY_DATA:
                        (self.pid,) = struct.unpack_from("!I", message, 5)
                    elif kind in (PARAMETERS, COLUMNS, NO_COLUMNS):
                        self._asked.learn(message)
                    elif kind == ROW and self._requests:
                        answer.columns = self._requests[0][1] or answer.columns
                    elif kind == ERROR:
                        message = self._as_deadlock(message)
                    answer.read(message)
                    if kind == READY:
                        self._replied(answer, message[5:6])
                        answer = Reply()
                    out.append(message)
                self._client.sendall(b"".join(out))
        except OSError:
            pass  # the other side is gone
        self.cut()

    def _replied(self, answer: Reply, status: bytes) -> None:
        """Tell of it before the client hears it: from then on the user's code runs again."""
        performer = self._relay.performer
        text, _ = self._requests.popleft() if self._requests else (None, [])
        is_open = status != b"I"
        if performer is not None:
            ended = not is_open and (self._was_open or text is not None)
            performer.answered(None if text is None else f"{text}{answer.shown()}", ended=ended)
        self._was_open = is_open

    def _as_deadlock(self, message: bytes) -> bytes:
        """What the explorer cancelled in place of the server's deadlock detector is told as that would tell it."""
        performer = self._relay.performer
        if performer is None or not performer.victim or error_fields(message).get("C") != CANCELLED:
            return message
        return error_message(DEADLOCK, "deadlock detected", "the explorer chose whom it ends, not the clock")

    def _pass_startup(self) -> None:
        """Startup messages have a length and no type. TLS is not spoken here."""
        while True:
            head = self._client.recv(8, socket.MSG_WAITALL)
            if len(head) < 8:
                return
            size, code = struct.unpack("!II", head)
            if code in (SSL_REQUEST, GSS_REQUEST):
                self._client.sendall(b"N")
                continue
            rest = self._client.recv(size - 8, socket.MSG_WAITALL) if size > 8 else b""
            if self._relay.performer is not None:
                self._relay.performer.said.add(rest.decode("utf-8", "replace"))
            self._server.sendall(head + rest)
            return
