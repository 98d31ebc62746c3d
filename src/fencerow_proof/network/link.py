"""One client's connection through the proxy: it reads both directions message by message and breaks where it must.

Replies come in groups, each ended by ReadyForQuery: one per simple query and one per Sync. A fault aimed at a
statement is applied to the group that holds its reply, whatever else is in the pipeline; the group is read to
its end first, so that the server is through with the statement (and its commit) before anything breaks.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable

from fencerow_proof.network.faults import CUTS, Fault, Phase, Plan

READY = b"Z"
QUERY, PARSE, BIND, EXECUTE, CLOSE, SYNC = b"Q", b"P", b"B", b"E", b"C", b"S"
COPY_IN = b"G"
SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
LINGER_NONE = struct.pack("ii", 1, 0)


class Link:
    """Two sockets and a thread for each direction, which the proxy starts. `on_over` is called once."""

    def __init__(
        self, plan: Plan, client: socket.socket, server: socket.socket, on_over: Callable[[Link], None]
    ) -> None:
        self._plan = plan
        self._client = client
        self._server = server
        self._on_over = on_over
        self._texts: dict[bytes, str] = {}  # of prepared statements, by name
        self._portals: dict[bytes, str] = {}
        self._groups_asked = 1  # the answer to the startup is the first group
        self._groups_seen = 0
        self._aimed: dict[int, tuple[Fault, str]] = {}  # by the number of the reply's group
        self._doomed = False  # a statement has met a cut, which ends this connection
        self._deaf = False
        self._mute = False
        self._over = threading.Event()
        self._lock = threading.Lock()

    # --- the two directions --------------------------------------------------------------------------

    def pass_queries(self) -> None:
        """From the client to the server, until one of them is gone."""
        try:
            self._pass_startup()
            while (message := _message(self._client)) is not None:
                if not self._deaf and not self._met(message):
                    return
                if not self._deaf:
                    self._server.sendall(message)
        except OSError:
            pass  # the other thread cut
        self.cut()

    def pass_answers(self) -> None:
        """From the server to the client."""
        try:
            # Refusing TLS or GSS is a single byte and no message.
            while self._server.recv(1, socket.MSG_PEEK) == b"N":
                self._client.sendall(self._server.recv(1))
            group: list[bytes] = []
            while (message := _message(self._server)) is not None:
                aimed = self._aimed.get(self._groups_seen + 1)
                if aimed is not None and message[:1] != COPY_IN:  # without it the rows would never be sent
                    group.append(message)
                elif not self._mute:
                    self._client.sendall(message)
                if message[:1] == READY:
                    self._groups_seen += 1
                    if aimed is not None and not self._answer(aimed[0], aimed[1], b"".join(group)):
                        return
                    group = []
        except OSError:
            pass
        self.cut()

    def cut(self, *, reset: bool = False) -> None:
        """Close both ends; doing it twice is harmless. A reset throws away what the client has not read."""
        with self._lock:
            if self._over.is_set():
                return
            self._over.set()
        if reset:
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
        # Shutting down wakes the thread that reads; only the read side sends no FIN before the reset.
        _shut(self._client, socket.SHUT_RD if reset else socket.SHUT_RDWR)
        _shut(self._server, socket.SHUT_RDWR)
        self._client.close()
        self._server.close()
        self._on_over(self)

    def go_dark(self) -> None:
        """From now on nothing passes in either direction, and nothing is closed."""
        self._deaf = self._mute = True

    # --- faults --------------------------------------------------------------------------------------

    def _met(self, message: bytes) -> bool:
        """Look for a fault that this message meets; false when the connection is cut before it.

        What comes behind a statement that meets a cut meets nothing: whether it arrives before the cut is chance, and
        the faults and throws of others must not hang on that.
        """
        statement = self._statement(message)
        fault = self._plan.aimed_at(statement) if statement and not self._doomed else None
        if fault is not None and statement is not None:
            self._doomed = fault.phase in CUTS
            if fault.phase is Phase.BEFORE:
                self._plan.struck(fault, statement)
                self.cut(reset=fault.reset)
                return False
            if fault.phase is Phase.DEAF:
                self._plan.struck(fault, statement)
                self._deaf = True
                return True
            self._aimed[self._groups_asked + 1] = (fault, statement)
        if message[:1] in (QUERY, SYNC):
            self._groups_asked += 1
        return True

    def _answer(self, fault: Fault, statement: str, reply: bytes) -> bool:
        """What the client gets of a reply; false when the connection is over."""
        sent = reply
        if fault.phase is Phase.DURING:
            keep = len(reply) // 2 if fault.keep_bytes is None else fault.keep_bytes
            sent = reply[: max(1, min(keep, len(reply) - 1))]
        elif fault.phase in (Phase.UNANSWERED, Phase.MUTE):
            sent = b""
        self._plan.struck(fault, statement, len(sent))
        if fault.phase is Phase.MUTE:
            self._mute = True
            return True
        if fault.phase is Phase.DELAY:
            self._over.wait(fault.seconds)
        self._send(sent, fault.seconds if fault.phase is Phase.TRICKLE else None)
        if fault.phase in CUTS:
            # An orderly end for what was sent: a reset would take it back.
            self.cut(reset=fault.reset and fault.phase is Phase.UNANSWERED)
            return False
        return True

    def _send(self, data: bytes, pause_s: float | None) -> None:
        if self._mute:
            return
        if pause_s is None:
            self._client.sendall(data)
            return
        for position in range(len(data)):
            self._client.sendall(data[position : position + 1])
            if self._over.wait(pause_s):
                return

    # --- the protocol --------------------------------------------------------------------------------

    def _statement(self, message: bytes) -> str | None:
        """The text of the statement that this message makes the server run, if it does."""
        kind, body = message[:1], message[5:]
        match kind:
            case b"Q":
                return _text(body)
            case b"P":
                name, rest = _name(body)
                self._texts[name] = _text(rest)
            case b"B":
                portal, rest = _name(body)
                name, _ = _name(rest)
                self._portals[portal] = self._texts.get(name, "")
            case b"E":
                portal, _ = _name(body)
                return self._portals.get(portal)
            case _:
                pass
        return None

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


def _shut(end: socket.socket, how: int) -> None:
    try:
        end.shutdown(how)
    except OSError:
        pass  # it was closed already


def _name(body: bytes) -> tuple[bytes, bytes]:
    name, _, rest = body.partition(b"\0")
    return name, rest


def _text(body: bytes) -> str:
    return body.partition(b"\0")[0].decode("utf-8", "replace")


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
