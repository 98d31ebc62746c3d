"""The addresses of a host, asked for once: in a thread, because the system's resolver cannot be interrupted."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from fencerow.web.webhooks.addresses import Address
from fencerow.web.webhooks.errors import FailedBy, PostFailed
from fencerow.web.webhooks.urls import Target

Resolve = Callable[[str, int], Sequence[str]]
Answer = asyncio.Future[Sequence[str]]

THREADS_MAX: Final = 32  # of this process: a lookup that hangs keeps its thread until it ends
ADDRESSES_MAX: Final = 64
THREAD: Final = "fencerow-webhook-dns"


def by_system(host: str, port: int) -> list[str]:
    """What the system says: its hosts file, then DNS."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


async def addresses_of(target: Target, resolve: Resolve) -> tuple[Address, ...]:
    """All addresses of the target, in the order in which they shall be tried.

    Raises:
        PostFailed: it has none, or more than anybody has.
    """
    if (own := target.address) is not None:
        return (own,)
    try:
        texts = await LOOKUPS.look_up(lambda: resolve(target.host, target.port))
        found = tuple(ipaddress.ip_address(text) for text in texts)
    except (OSError, ValueError) as error:  # what is no name for DNS is a UnicodeError
        raise PostFailed.by(FailedBy.DNS) from error
    if not 1 <= len(found) <= ADDRESSES_MAX:
        raise PostFailed.by(FailedBy.DNS)
    return found


class Lookups:
    """A few threads for lookups; where all of them hang, a lookup waits, and whoever waits too long gives it up.

    The pool of the loop is not used: everybody shares its threads, and the end of the program waits for them.
    """

    def __init__(self, threads_max: int) -> None:
        self._threads_max = threads_max
        self._threads = 0
        self._waiting: deque[tuple[Callable[[], Sequence[str]], asyncio.AbstractEventLoop, Answer]] = deque()
        self._lock = threading.Lock()

    async def look_up(self, lookup: Callable[[], Sequence[str]]) -> Sequence[str]:
        """What the lookup returns or raises."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        with self._lock:
            self._waiting.append((lookup, loop, answer))
            begin = self._threads < self._threads_max
            self._threads += begin
        if begin:
            self._begin()
        return await answer

    def _begin(self) -> None:
        try:
            threading.Thread(target=self._serve, name=THREAD, daemon=True).start()
        except RuntimeError:  # the system has no thread left; one that runs may come to it in time
            with self._lock:
                self._threads -= 1

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                lookup, loop, answer = self._waiting.popleft()
            if not answer.done():
                _answer(lookup, loop, answer)


def _answer(lookup: Callable[[], Sequence[str]], loop: asyncio.AbstractEventLoop, answer: Answer) -> None:
    found: Sequence[str] = ()
    trouble: Exception | None = None
    try:
        found = lookup()
    except Exception as error:
        trouble = error
    try:
        loop.call_soon_threadsafe(_tell, answer, found, trouble)
    except RuntimeError:
        pass  # the loop has ended meanwhile; nobody waits


def _tell(answer: Answer, found: Sequence[str], trouble: Exception | None) -> None:
    if answer.done():
        return  # given up meanwhile
    if trouble is None:
        answer.set_result(found)
    else:
        answer.set_exception(trouble)


LOOKUPS: Final = Lookups(THREADS_MAX)
