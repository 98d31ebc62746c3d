"""The addresses of a host, asked for once: in a thread, because the system's resolver cannot be interrupted."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final

from fencerow.web.webhooks.addresses import Address
from fencerow.web.webhooks.errors import FailedBy, PostFailed
from fencerow.web.webhooks.urls import Target

Resolve = Callable[[str, int], Sequence[str]]

RESOLVING_MAX: Final = 32  # lookups of this process at once: those that hang keep their thread until they end
ADDRESSES_MAX: Final = 64
THREAD: Final = "fencerow-webhook-dns"

_rooms = threading.BoundedSemaphore(RESOLVING_MAX)


def by_system(host: str, port: int) -> list[str]:
    """What the system says: its hosts file, then DNS."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


async def addresses_of(target: Target, resolve: Resolve) -> tuple[Address, ...]:
    """All addresses of the target, in the order in which they shall be tried.

    Raises:
        PostFailed: it has none, more than anybody has, or too many lookups hang already.
    """
    if (own := target.address) is not None:
        return (own,)
    try:
        texts = await _in_thread(lambda: resolve(target.host, target.port))
        found = tuple(ipaddress.ip_address(text) for text in texts)
    except (OSError, ValueError) as error:  # what is no name for DNS is a UnicodeError
        raise PostFailed(FailedBy.DNS) from error
    if not 1 <= len(found) <= ADDRESSES_MAX:
        raise PostFailed(FailedBy.DNS)
    return found


async def _in_thread(lookup: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Not in the pool of the loop, whose threads everybody shares, and which is waited for at the end."""
    if not _rooms.acquire(blocking=False):
        raise PostFailed(FailedBy.DNS)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()
    try:
        threading.Thread(target=_look_up, args=(lookup, loop, answer), name=THREAD, daemon=True).start()
    except RuntimeError as error:  # the system has no thread left
        _rooms.release()
        raise PostFailed(FailedBy.DNS) from error
    return await answer


def _look_up(
    lookup: Callable[[], Sequence[str]],
    loop: asyncio.AbstractEventLoop,
    answer: asyncio.Future[Sequence[str]],
) -> None:
    found: Sequence[str] = ()
    trouble: Exception | None = None
    try:
        found = lookup()
    except Exception as error:
        trouble = error
    finally:
        _rooms.release()
    try:
        loop.call_soon_threadsafe(_tell, answer, found, trouble)
    except RuntimeError:
        pass  # the loop has ended meanwhile; nobody waits


def _tell(answer: asyncio.Future[Sequence[str]], found: Sequence[str], trouble: Exception | None) -> None:
    if answer.done():
        return  # given up meanwhile
    if trouble is None:
        answer.set_result(found)
    else:
        answer.set_exception(trouble)
