"""Bytes to a gateway and an answer back, over connections that are kept where the gateway keeps them."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Self

import httpx

ANSWER_S = 60.0
# How a connection may end while somebody still writes to it: the gateway has said no, and hung up.
HUNG_UP = (ConnectionError, asyncio.IncompleteReadError)


@dataclass
class Answer:
    """What came back. `status` 0: the connection was ended without a word."""

    status: int
    headers: httpx.Headers
    body: bytes

    @property
    def by_the_gateway(self) -> bool:
        """What is no HTTP at all is refused by the server below it, in its own words."""
        return "x-request-id" in self.headers


NOTHING = Answer(0, httpx.Headers(), b"")


@dataclass
class Wire:
    """One connection at a time to a port of this machine."""

    port: int
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = field(default=None, repr=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ask(self, raw: bytes, *, head: bool = False, alone: bool = False) -> Answer:
        """Send this and read one answer. `alone`: over a connection of its own.

        Raises:
            TimeoutError: nothing came for a minute.
        """
        if alone:
            await self.close()
        async with asyncio.timeout(ANSWER_S):
            for _ in range(2):  # a kept connection may have been ended meanwhile
                fresh = self._streams is None
                answer = await self._asked(raw, head)
                if alone or answer.status == 0 or answer.headers.get("connection") == "close":
                    await self.close()
                if answer.status or fresh:
                    return answer
        return NOTHING

    async def _asked(self, raw: bytes, head: bool) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._streams
        try:
            writer.write(raw)
            await writer.drain()
        except HUNG_UP:
            pass  # it may have answered before
        try:
            return await read_answer(reader, head)
        except HUNG_UP:
            return NOTHING

    async def close(self) -> None:
        """End the connection, if there is one."""
        if self._streams is not None:
            writer, self._streams = self._streams[1], None
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def read_answer(reader: asyncio.StreamReader, head: bool = False) -> Answer:
    """The next answer of a connection; of a stream, its headers alone."""
    said = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(said[0].split()[1])
    headers = httpx.Headers(
        [(name, value.strip()) for name, _, value in (line.partition(":") for line in said[1:-2])]
    )
    if head or status in (204, 304) or "content-length" not in headers:
        streamed = "content-length" not in headers and not head and status != 204
        return Answer(status, httpx.Headers({**headers, "connection": "close"}) if streamed else headers, b"")
    return Answer(status, headers, await reader.readexactly(int(headers["content-length"])))
