"""A server that falls silent: connections stay open, what is sent is taken, and no answer ever comes."""

from __future__ import annotations

import select
import socket
import threading
from typing import Self

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer

LIMIT_S = 0.8  # an honest answer on a busy machine comes sooner


class Silence:
    """Passes bytes on between clients and a server's port. `fall` mutes the links of that moment, not later ones."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._mute: set[socket.socket] = set()  # ends whose bytes are taken and dropped
        self._links: list[tuple[socket.socket, socket.socket]] = []
        self._new_are_mute = False
        self._stop_here, self._stop_there = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="fencerow-silence", daemon=True)
        self.sent = b""  # all that clients said

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_there.close()
        self._thread.join()
        for end in (self._listener, self._stop_here, *(end for link in self._links for end in link)):
            end.close()

    def fall(self, *, deaf: bool = False, also_new: bool = False) -> None:
        """No answer passes any more; `deaf`: nor does what clients send. Keepalives are answered by the kernel."""
        with self._lock:
            self._mute |= {end for link in self._links for end in (link if deaf else link[1:])}
            self._new_are_mute = also_new

    def rise(self) -> None:
        """New links pass again. Those that fell silent stay so: nobody at either end has noticed anything."""
        with self._lock:
            self._new_are_mute = False

    def _run(self) -> None:
        peers: dict[socket.socket, socket.socket] = {}
        while True:
            readable, _, _ = select.select([self._listener, self._stop_here, *peers], [], [])
            if self._stop_here in readable:
                return
            for end in readable:
                if end is self._listener:
                    peers.update(self._accept())
                elif end in peers:
                    self._pass(end, peers)

    def _accept(self) -> dict[socket.socket, socket.socket]:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._target))
        with self._lock:
            self._links.append((client, server))
            if self._new_are_mute:
                self._mute |= {client, server}
        return {client: server, server: client}

    def _pass(self, end: socket.socket, peers: dict[socket.socket, socket.socket]) -> None:
        try:
            said = end.recv(65536)
            with self._lock:
                mute = end in self._mute
                if any(end is client for client, _ in self._links):
                    self.sent += said
            if said and not mute:
                peers[end].sendall(said)
        except OSError:
            said = b""
        if not said:
            other = peers.pop(end)
            peers.pop(other, None)
            for each in (end, other):
                each.close()


def engine_to(server: PostgresServer, silence: Silence, limit_s: float = LIMIT_S) -> PostgresEngine:
    url = f"postgresql://app:{server.password}@127.0.0.1:{silence.port}/app"
    return PostgresEngine(url, store.postgres_queries(), statement_timeout_s=limit_s, connect_timeout_s=4.0)
