"""A gateway on a real socket in the loop of a test, and who connects to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

from fencerow import App
from fencerow.supervisor.probes import ProbeAddress, listening
from fencerow.web.gateway.connection import Bounded
from fencerow.web.gateway.server import Server

PATIENCE_S = 60
LIVE = b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@dataclass
class Served:
    """A server of this event loop."""

    server: Server
    port: int
    running: asyncio.Task[None]
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def raw(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection over which this was sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        writer.write(data)
        await writer.drain()
        return reader, writer

    def unread(self) -> int:
        """How many bytes have come that are no whole request yet."""
        found = self.server._uvicorn.server_state.connections
        return sum(len(each.conn.trailing_data[0]) for each in found if isinstance(each, Bounded))

    def connections(self) -> int:
        """How many there are."""
        return len(self.server._uvicorn.server_state.connections)

    async def is_serving(self) -> bool:
        """Whether a newcomer is answered."""
        reader, writer = await self.raw(LIVE)
        told = await answered(reader)
        writer.close()
        return b"200 OK" in told

    @contextlib.contextmanager
    def who_reads_nothing(self) -> Iterator[None]:
        """Somebody who asks for more than a small socket holds, and reads nothing of it."""
        with socket.socket() as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.settimeout(PATIENCE_S)
            caller.connect(("127.0.0.1", self.port))
            caller.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 50)
            yield


Serve = Callable[..., contextlib.AbstractAsyncContextManager[Served]]


@contextlib.asynccontextmanager
async def serving_on(server: Server) -> AsyncIterator[Served]:
    """It serves on a port of its own while this lasts."""
    found = listening(ProbeAddress("127.0.0.1", 0))
    running = asyncio.create_task(server.run([found]))
    served = Served(server, found.getsockname()[1], running)
    try:
        yield served
    finally:
        for each in served.writers:
            each.close()
            with contextlib.suppress(ConnectionError):
                await each.wait_closed()
        server.leave()
        server.leave()
        async with asyncio.timeout(PATIENCE_S):
            await running


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not fact():
            await asyncio.sleep(0.01)


async def answered(reader: asyncio.StreamReader) -> bytes:
    """The next answer that has a body of JSON in it."""
    async with asyncio.timeout(PATIENCE_S):
        return await reader.readuntil(b"}")


async def until_ended(reader: asyncio.StreamReader) -> None:
    """Wait until nothing more comes, for the connection was ended."""
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                pass


def submit_of(length: int) -> bytes:
    """The headers of a submit whose body has so many bytes, and none of them."""
    return (
        b"POST /v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    ) % length


def waited_for(app: App) -> bool:
    """Whether somebody waits for a job there."""
    return bool(app.client._poller._watched)
