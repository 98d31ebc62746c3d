"""A TCP proxy in front of PostgreSQL that breaks a connection at an exact message, as networks do at any.

    with FaultProxy(port) as proxy:
        proxy.cut_before("COMMIT")          # the server never sees it: nothing is stored
        proxy.cut_after_reply_to("COMMIT")  # it is done, and nobody hears of it
        proxy.inject(Fault(Phase.DURING, "INSERT", nth=3, reset=True), Fault(Phase.MUTE))
        proxy.throw(Dice(seed=7, chance=0.02))
        ...
        assert proxy.count()[Phase.DURING] == 1   # only what struck is counted; proxy.strikes says where

A text is looked for in what a client makes the server run: simple queries, and the execution of prepared
ones, in pipelines too. It serves any driver. The listening socket stays, so the client can come back
through the proxy. TLS is not spoken.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import Self

from fencerow_proof.network.faults import CUTS, Dice, Fault, Phase, Plan, Strike
from fencerow_proof.network.link import Link


class FaultProxy:
    """Listens on 127.0.0.1 and passes everything on to a server's port, until it is told to break something."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(None)  # whatever time-out the application gives to new ones
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._plan = Plan()
        self._links: set[Link] = set()
        self._swallowed: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._refusing = False
        self._dark = False

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- faults at a statement ---------------------------------------------------------------------

    def inject(self, *faults: Fault) -> None:
        """Aim faults at statements to come; each strikes once."""
        self._plan.arm(faults)

    def throw(self, dice: Dice | None) -> None:
        """Let dice strike at statements at random, by their seed; None ends it."""
        self._plan.throw(dice)

    def disarm(self) -> list[Fault]:
        """Forget the faults that have not struck, and return them."""
        return self._plan.disarm()

    def cut_before(self, text: str) -> None:
        """Break the next connection that sends a query with this text; the server does not see the query."""
        self.inject(Fault(Phase.BEFORE, text))

    def cut_after_reply_to(self, text: str) -> None:
        """Let the next query with this text be done and answered, and break the connection before the answer."""
        self.inject(Fault(Phase.UNANSWERED, text))

    @property
    def strikes(self) -> list[Strike]:
        """Every fault that struck, in order, with the statement it met."""
        return list(self._plan.strikes)

    @property
    def cuts(self) -> int:
        """How many connections were cut at a statement."""
        return sum(count for phase, count in self.count().items() if phase in CUTS)

    def count(self) -> Counter[Phase]:
        """How many faults of each kind struck."""
        return self._plan.count()

    # --- faults of the whole network -----------------------------------------------------------------

    def refuse_new(self) -> None:
        """Let go on what is connected, and take nobody in any more: the server is about to be away."""
        self._refusing = True

    def black_hole(self) -> None:
        """From now on accept and never answer: open connections go silent both ways, new ones get nothing."""
        self._dark = True
        for link in self._open():
            link.go_dark()

    def heal(self) -> None:
        """End `refuse_new` and `black_hole`. What fell silent is cut; new connections pass."""
        was_dark, self._dark, self._refusing = self._dark, False, False
        if was_dark:
            self.cut_all(reset=True)

    def cut_all(self, *, reset: bool = False) -> None:
        """Break every connection now."""
        for link in self._open():
            link.cut(reset=reset)
        with self._lock:
            swallowed, self._swallowed = self._swallowed, []
        for client in swallowed:
            client.close()

    def close(self) -> None:
        """Stop listening and break what is left."""
        self._closed = True
        # shutdown wakes the thread that waits in accept; close alone does not on Linux.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()
        for thread in self._threads:
            thread.join(5)

    # --- inside ------------------------------------------------------------------------------------

    def _open(self) -> list[Link]:
        with self._lock:
            return list(self._links)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.settimeout(None)
            self._take(client)

    def _take(self, client: socket.socket) -> None:
        if self._dark:
            with self._lock:
                self._swallowed.append(client)
            return
        if self._refusing:
            client.close()
            return
        try:
            server = socket.create_connection(self._target, 5)
        except OSError:
            client.close()  # the server is away: the client sees a broken connection, as it would without us
            return
        server.settimeout(None)
        for end in (client, server):  # what comes in several small pieces is passed on as it comes
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(self._plan, client, server, self._forget)
        with self._lock:
            self._links.add(link)
        self._start(link.pass_queries)
        self._start(link.pass_answers)

    def _forget(self, link: Link) -> None:
        with self._lock:
            self._links.discard(link)

    def _start(self, target: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=target, name="fencerow-proxy", daemon=True)
        self._threads.append(thread)
        thread.start()
