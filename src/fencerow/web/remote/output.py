"""The output of a job behind a gateway, read as it comes, over as many connections as that takes."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta

import msgspec

from fencerow.core.errors import FencerowError, JobGone, Unavailable
from fencerow.core.model.job import EPOCH
from fencerow.db.blocking import refuse_in_loop
from fencerow.output.model import Chunk
from fencerow.web.remote.exchange import FIRST_PAUSE_S, PAUSE_S_MAX, Exchange, passes
from fencerow.web.remote.refusals import said_in_stream
from fencerow.web.remote.wire import Wire


class ChunkRead(msgspec.Struct, frozen=True):
    """A chunk as the gateway tells it."""

    offset: int
    attempt: int
    at: str
    text: str | None = None
    json: msgspec.Raw = msgspec.Raw()
    bytes: str | None = None


class UnreadableRead(msgspec.Struct, frozen=True):
    """Why the gateway cannot read what follows."""

    code: str


class RemoteOutput:
    """Reads from an offset on. Whenever a connection ends before the output does, another one goes on behind it."""

    def __init__(self, wire: Wire, job_id: str, after: int, patience_s: float) -> None:
        self._wire = wire
        self._job_id = job_id
        self._after = after
        self._patience_s = patience_s
        self._until = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._is_over = False

    def __iter__(self) -> Iterator[Chunk]:
        refuse_in_loop()
        return self._chunks()

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self._achunks()

    def _chunks(self) -> Iterator[Chunk]:
        self._heard()
        while not self._is_over:
            try:
                with self._wire.lines(self._exchange()) as lines:
                    event = ""
                    for line in lines:
                        event = line[7:] if line.startswith("event: ") else event
                        if line.startswith("data: ") and (chunk := self._told(event, line[6:])):
                            yield chunk
            except FencerowError as error:
                time.sleep(self._pause_after(error))

    async def _achunks(self) -> AsyncIterator[Chunk]:
        self._heard()
        while not self._is_over:
            try:
                async with self._wire.alines(self._exchange()) as lines:
                    event = ""
                    async for line in lines:
                        event = line[7:] if line.startswith("event: ") else event
                        if line.startswith("data: ") and (chunk := self._told(event, line[6:])):
                            yield chunk
            except FencerowError as error:
                await asyncio.sleep(self._pause_after(error))

    def _exchange(self) -> Exchange:
        return Exchange("GET", f"/v1/jobs/{self._job_id}/output", query={"after": str(self._after)})

    def _heard(self) -> None:
        self._until = time.monotonic() + self._patience_s
        self._pause_s = FIRST_PAUSE_S

    def _pause_after(self, error: FencerowError) -> float:
        """How long to wait before the next connection.

        Raises: the error, if that would not help, or nobody has answered for too long.
        """
        wait_s = max(self._pause_s, getattr(error, "retry_after_s", None) or 0.0)
        if self._is_over or not passes(error) or time.monotonic() + wait_s > self._until:
            raise error
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)
        return wait_s

    def _told(self, event: str, data: str) -> Chunk | None:
        """What an event says: a chunk, or that there is no more."""
        self._heard()
        if event == "chunk":
            chunk = _chunk(data)
            self._after = chunk.offset
            return chunk
        self._is_over = event in ("end", "gone", "unreadable")
        if event == "gone":
            raise JobGone(
                f"job {self._job_id} is gone",
                "it was removed, or is not for this token any more",
                "read sooner",
            )
        if event == "unreadable":
            raise said_in_stream(msgspec.json.decode(data, type=UnreadableRead).code, self._job_id)
        return None


def _chunk(data: str) -> Chunk:
    try:
        read = msgspec.json.decode(data, type=ChunkRead)
        at_us = (datetime.fromisoformat(read.at) - EPOCH) // timedelta(microseconds=1)
        said = read.text if read.text is not None else _other(read)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unavailable(
            "an event is none of the gateway's",
            str(error)[:200],
            "check the address, and what stands between",
        ) from None
    return Chunk(offset=read.offset, attempt=read.attempt, data=said, at_us=at_us)


def _other(read: ChunkRead) -> object:
    if read.bytes is not None:
        return base64.b64decode(read.bytes, validate=True)
    return msgspec.json.decode(read.json)
