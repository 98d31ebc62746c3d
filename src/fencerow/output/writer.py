"""The output of one attempt while it runs: chunks gather, and one write after the other brings them to the database.

All writes are made on the worker's event loop, so that they keep their order whatever thread emits: a reader that has
seen an offset would never look for one below it.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, NamedTuple

from fencerow.core.model.packed import Bound
from fencerow.core.worker.attempt import Attempt, lease_lost
from fencerow.db.strikes import SHELTER
from fencerow.output import storing
from fencerow.output.errors import OutputNotPossible, OutputSpent
from fencerow.output.model import ChunkGroup, encoded, joined, offset_of
from fencerow.output.settings import OutputSettings

if TYPE_CHECKING:
    from fencerow.db.engine import AsyncSession, Engine

GROUP_CHUNKS_MAX = 500
GROUP_BYTES_MAX = 64 * 1024


class Gathered(NamedTuple):
    """Encoded chunks that wait to be written, and the number of the last one in its attempt."""

    chunks: list[bytes]
    number: int


class Writer:
    """What one attempt emits. Made at its first chunk: until then output costs nothing.

    Chunks are taken from any thread. `full`: whoever emits waits for a write first, so that memory stays bounded.
    """

    def __init__(
        self, attempt: Attempt, engine: Engine, loop: asyncio.AbstractEventLoop, settings: OutputSettings
    ) -> None:
        self._attempt = attempt
        self._engine = engine
        self._loop = loop
        self._settings = settings
        self._lock = threading.Lock()  # of what is said below, up to the empty line
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._number = 0
        self._chunks = 0  # those of earlier attempts, too, once they are known
        self._bytes = 0
        self._is_over = False
        self._is_due = False  # a write of what waits is on its way

        self._writing = asyncio.Lock()
        self._under_way: ChunkGroup | None = None
        self._begun = False
        self._trouble: Exception | None = None

    @property
    def waits(self) -> bool:
        """Whether whoever emits now is to wait for a write: for the first one, or because much has gathered."""
        return (
            not self._begun
            or len(self._waiting) >= GROUP_CHUNKS_MAX
            or self._waiting_bytes >= GROUP_BYTES_MAX
        )

    @property
    def is_broken(self) -> bool:
        """Whether a write has failed. Whoever emitted was told, or will be."""
        return self._trouble is not None

    def add(self, data: object) -> None:
        """Take a chunk. It is written within `output_write_s`, and before the attempt ends.

        Raises:
            ChunkRefused, OutputSpent, OutputNotPossible: it is not taken. And whatever a write before this met.
        """
        chunk = encoded(data, self._settings.output_chunk_bytes_max)
        with SHELTER, self._lock:
            if self._trouble is not None:
                raise self._trouble
            if self._is_over:
                raise OutputNotPossible(
                    f"job {self._attempt.claimed.id} emits after its attempt {self._attempt.claimed.attempt} has ended",
                    "its output is complete when its handler returns",
                    "wait in the handler for what it has begun",
                )
            self._check_room(len(chunk))
            self._waiting.append(chunk)
            self._waiting_bytes += len(chunk)
            self._number += 1
            self._chunks += 1
            self._bytes += len(chunk)
            arm, self._is_due = not self._is_due, True
        if arm:
            self._loop.call_soon_threadsafe(self._loop.call_later, self._settings.output_write_s, self._due)

    async def flush(self) -> None:
        """Write what waits.

        Raises:
            LeaseLost: the attempt no longer holds the job. OutputNotPossible: the job is ephemeral.
        """
        async with self._writing:
            if self._trouble is not None:
                raise self._trouble
            try:
                await self._begin()
                # One whose caller was cancelled may still be on its way: it is made sure of first.
                while (group := self._under_way or self._take()) is not None:
                    self._under_way = group
                    await self._write(self._engine, group)
                    self._under_way = None
            except Exception as error:
                self._trouble = error
                raise

    async def finish(self, inside: AsyncSession | None) -> None:
        """Write the last of it; nothing is taken any more. `inside`: the attempt's own transaction, where no other can
        write before that has ended. A write that waits for that end is made here, and finds itself made.

        Raises: as `flush`.
        """
        with self._lock:
            self._is_over = True
        if inside is None:
            await self.flush()
            return
        if self._trouble is not None:
            raise self._trouble
        for group in (self._under_way, self._take()):
            if group is not None:
                await self._write(inside, group)

    def _due(self) -> None:
        """On the loop: what has gathered is to be written."""
        with self._lock:
            self._is_due = False
            if self._is_over or not self._waiting:
                return
        self._timed = asyncio.ensure_future(self._flush_timed())

    async def _flush_timed(self) -> None:
        """Whoever emits next, or the end of the handler, is told what it met."""
        try:
            await self.flush()
        except Exception:  # noqa: S110 - it is kept
            pass

    async def _begin(self) -> None:
        if self._begun:
            return
        claimed = self._attempt.claimed
        begun = await self._engine.arun(
            storing.begin(claimed.id, holder=self._attempt.holder, attempt=claimed.attempt)
        )
        if begun is None:
            raise lease_lost(claimed.id, claimed.attempt)
        if begun.ephemeral:
            raise OutputNotPossible(
                f"job {claimed.id} is ephemeral",
                "it leaves nothing behind, so nobody could read what it emits",
                "declare it without ephemeral=True",
            )
        with self._lock:
            self._chunks += begun.chunks
            self._bytes += begun.bytes
            self._begun = True
            self._check_room(0)

    def _check_room(self, more: int) -> None:
        """Whether a chunk of so many bytes may be taken, by what is known. 0: what was taken already.

        Raises:
            OutputSpent: it may not.
        """
        chunks, size = self._chunks + bool(more), self._bytes + more
        if chunks > self._settings.output_chunks_max or size > self._settings.output_bytes_max:
            raise OutputSpent(
                f"job {self._attempt.claimed.id} would have emitted {chunks} chunks of {size} bytes",
                f"a job may emit {self._settings.output_chunks_max} chunks and {self._settings.output_bytes_max} bytes",
                "emit less, or raise output_chunks_max or output_bytes_max",
            )

    def _take(self) -> ChunkGroup | None:
        """What waits, as it is stored."""
        with self._lock:
            chunks, number = self._waiting, self._number
            self._waiting, self._waiting_bytes = [], 0
        if not chunks:
            return None
        claimed, last = self._attempt.claimed, offset_of(self._attempt.claimed.attempt, number)
        bound = Bound("output", claimed.id, str(last))
        data = self._attempt.handler.packing.inside.pack(joined(chunks), bound).decode()
        return ChunkGroup(last=last, attempt=claimed.attempt, chunks=len(chunks), data=data)

    async def _write(self, where: Engine | AsyncSession, group: ChunkGroup) -> None:
        claimed = self._attempt.claimed
        if not await where.arun(storing.write(claimed.id, group, holder=self._attempt.holder)):
            raise lease_lost(claimed.id, claimed.attempt)
