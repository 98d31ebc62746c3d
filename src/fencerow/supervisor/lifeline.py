"""The end of the lifeline that a worker process holds: its supervisor orders it to leave, and it tells how it is.

When the supervisor dies, however it dies, the system closes the other end: then the worker leaves in order. That needs
no parent-death signal, which would fire when the *thread* that started the process ends, and would miss a death before
it was asked for.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable

import msgspec

from fencerow.core.worker.vitals import Vitals
from fencerow.db.errors import exits

log = logging.getLogger("fencerow.supervisor")

LEAVE = b"t"
HURRY = b"!"


class Lifeline:
    """Made first of all, so that a supervisor that dies during the start leaves nobody behind.

    An order that comes before a worker is there ends the process: nothing has been started.
    """

    def __init__(self, number: int, descriptor: int) -> None:
        self.number = number
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)  # whatever time-out this interpreter gives to new ones
        self._socket.set_inheritable(False)  # the jobs' own processes have no part in it
        self._lock = threading.RLock()  # a signal's handler may come while its own thread is in here
        self._leave: Callable[[str], None] | None = None
        self._orders = 0
        threading.Thread(target=self._listen, name="fencerow-lifeline", daemon=True).start()

    def serve(self, leave: Callable[[str], None]) -> None:
        """From now on orders go to this worker: `leave` is called once with who orders it, and once more when there is
        no time."""
        with self._lock:
            self._leave = leave

    def signalled(self, name: str) -> None:
        """A signal that reached this process itself. It may have gone to the whole group, and the supervisor says the
        same then; so however many come, they mean one order to leave."""
        self._ordered(1, name)

    def tell(self, vitals: Vitals) -> None:
        """Say how the worker is. What finds no room is left out: the next one comes soon."""
        try:
            self._socket.send(msgspec.json.encode(vitals) + b"\n", socket.MSG_DONTWAIT)
        except OSError:
            pass  # nobody reads, or nobody is there

    def _listen(self) -> None:
        while order := self._received():
            self._ordered(2 if HURRY in order else 1, "its supervisor")
        log.warning("the supervisor is gone: this worker leaves in order")
        self._ordered(1, "its supervisor is gone")

    def _received(self) -> bytes:
        try:
            return self._socket.recv(64)
        except OSError:
            return b""

    def _ordered(self, orders: int, why: str) -> None:
        with self._lock:
            if self._leave is None:
                os._exit(exits.OK)  # in the middle of an import, perhaps, which nothing else would end
            while self._orders < orders:
                self._orders += 1
                self._leave(why)
