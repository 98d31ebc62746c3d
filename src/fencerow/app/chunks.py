"""Cutting many calls into chunks that are stored together."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Generic, TypeVar

from fencerow.app.submission import Call

R = TypeVar("R")

CHUNK_ROWS = 1_000
CHUNK_BYTES = 4 * 1024 * 1024


def chunks_of(calls: Iterable[Call[R]]) -> Iterator[list[Call[R]]]:
    chunk: _Chunk[R] = _Chunk()
    for call in calls:
        if chunk.is_full_for(call):
            yield chunk.calls
            chunk = _Chunk()
        chunk.add(call)
    if chunk.calls:
        yield chunk.calls


async def achunks_of(calls: Iterable[Call[R]] | AsyncIterable[Call[R]]) -> AsyncIterator[list[Call[R]]]:
    if isinstance(calls, Iterable):
        for few in chunks_of(calls):
            yield few
        return
    chunk: _Chunk[R] = _Chunk()
    async for call in calls:
        if chunk.is_full_for(call):
            yield chunk.calls
            chunk = _Chunk()
        chunk.add(call)
    if chunk.calls:
        yield chunk.calls


class _Chunk(Generic[R]):
    """Calls that go together, up to the size of a chunk."""

    def __init__(self) -> None:
        self.calls: list[Call[R]] = []
        self._bytes = 0

    def is_full_for(self, call: Call[R]) -> bool:
        full = len(self.calls) >= CHUNK_ROWS or self._bytes + len(call.args) > CHUNK_BYTES
        return full and bool(self.calls)

    def add(self, call: Call[R]) -> None:
        self.calls.append(call)
        self._bytes += len(call.args)
