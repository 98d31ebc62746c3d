"""Callers that keep a gateway waiting, in a process of their own: `python -m tools.attack.slow_callers` reads its
orders from its input, says `ready` once all have begun, and what became of them when its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import select
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tools.attack.wire import HUNG_UP

TRICKLE_S = 1.0
BODY_BYTES = 900_000
PIPELINED = 3
BEGUN_S = 6.0  # they come one after the other
RECEIVED_BYTES = 4096  # what the socket of a caller holds
AGAIN_S = 2.0  # who was cut off comes again, so long after on average
GIB = 2**30


@dataclass
class Orders:
    """Where they go, as whom, and to what."""

    port: int
    submits: str  # the tokens of those who submit, and of those who read
    reads: str
    job_id: str
    each: int  # so many callers of each kind
    tally: Counter[str] = field(default_factory=Counter)

    def head(self, method: str, target: str, token: str | None = None, more: str = "") -> bytes:
        """A request up to its last header."""
        token = token or (self.submits if method == "POST" else self.reads)
        return (
            f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n{more}"
        ).encode()


Caller = Callable[[Orders, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _trickle(writer: asyncio.StreamWriter, part: bytes) -> None:
    while True:
        await asyncio.sleep(TRICKLE_S)
        writer.write(part)
        await writer.drain()


async def slow_headers(orders: Orders, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A header that grows by a byte a second."""
    writer.write(orders.head("GET", "/livez") + b"X-Slow: ")
    await _trickle(writer, b"a")


async def slow_body(orders: Orders, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body of which most comes at once, and the rest by a byte a second. What is answered is read."""
    length = f"Content-Type: application/json\r\nContent-Length: {BODY_BYTES + 10_000}\r\n\r\n"
    writer.write(orders.head("POST", "/v1/jobs:validate", more=length) + b'{"job":"' + b"a" * BODY_BYTES)
    await _beside(_trickle(writer, b"a"), _read_to_the_end(reader))


async def slow_stranger(orders: Orders, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The same from somebody without a token, who is refused before the body, and goes on sending it."""
    length = f"Content-Type: application/json\r\nContent-Length: {GIB}\r\n\r\n"
    writer.write(orders.head("POST", "/v1/jobs", "nobody", length) + b"a" * 1000)
    await _beside(_trickle(writer, b"a"), _read_to_the_end(reader))


async def never_reads(orders: Orders, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Asks for more than its small socket holds, and reads nothing of it."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write((orders.head("GET", "/openapi.json") + b"\r\n") * PIPELINED)
    await _ended(writer)


async def never_reads_a_stream(orders: Orders, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A stream of events that nobody reads."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(orders.head("GET", f"/v1/jobs/{orders.job_id}/events") + b"\r\n")
    await _ended(writer)


async def idle(orders: Orders, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One good request, and then nothing."""
    writer.write(orders.head("GET", "/livez") + b"\r\n")
    await _read_to_the_end(reader)


async def silent(_orders: Orders, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """A connection over which nothing comes."""
    await _read_to_the_end(reader)


KINDS: tuple[Caller, ...] = (
    slow_headers,
    slow_body,
    slow_stranger,
    never_reads,
    never_reads_a_stream,
    idle,
    silent,
)


async def _read_to_the_end(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


async def _ended(writer: asyncio.StreamWriter) -> None:
    """Wait until the other side has ended it, without reading."""
    looked = select.poll()
    looked.register(writer.get_extra_info("socket").fileno(), select.POLLRDHUP)
    while not looked.poll(0):  # noqa: ASYNC110 (it is asyncio that must not read)
        await asyncio.sleep(TRICKLE_S)


async def _beside(writing: Awaitable[None], reading: Awaitable[None]) -> None:
    tasks = [asyncio.ensure_future(writing), asyncio.ensure_future(reading)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
    found.setblocking(False)
    await asyncio.get_running_loop().sock_connect(found, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=found)


async def _again_and_again(orders: Orders, kind: Caller, begun: asyncio.Semaphore) -> None:
    """One caller of this kind, who comes again whenever it is cut off."""
    name = kind.__name__
    await asyncio.sleep(random.uniform(0, BEGUN_S))
    while True:
        with contextlib.suppress(*HUNG_UP, OSError):
            reader, writer = await _connected(orders.port)
            orders.tally[f"{name}, begun"] += 1
            begun.release()
            try:
                await kind(orders, reader, writer)
            finally:
                writer.transport.abort()
        orders.tally[f"{name}, ended"] += 1
        await asyncio.sleep(random.uniform(0, 2 * AGAIN_S))


async def _played(orders: Orders) -> None:
    begun = asyncio.Semaphore(0)
    tasks = [
        asyncio.create_task(_again_and_again(orders, kind, begun))
        for kind in KINDS
        for _ in range(orders.each)
    ]
    for _ in tasks:
        await begun.acquire()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(orders.tally), flush=True)


if __name__ == "__main__":
    asyncio.run(_played(Orders(**json.loads(sys.stdin.readline()))))
