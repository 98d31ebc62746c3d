"""Cutting many calls into chunks that are stored together."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TypeVar

from fencerow.core.app.submission import Call, checked

R = TypeVar("R")

CHUNK_ROWS = 1_000
CHUNK_BYTES = 4 * 1024 * 1024


def chunks_of(calls: Iterable[Call[R]]) -> Iterator[list[Call[R]]]:
    chunk: list[Call[R]] = []
    size = 0
    for call in calls:
        size += len(checked(call).args)
        if chunk and (len(chunk) >= CHUNK_ROWS or size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], len(call.args)
        chunk.append(call)
    if chunk:
        yield chunk


async def achunks_of(calls: Iterable[Call[R]] | AsyncIterable[Call[R]]) -> AsyncIterator[list[Call[R]]]:
    if isinstance(calls, Iterable):
        for few in chunks_of(calls):
            yield few
        return
    chunk: list[Call[R]] = []
    size = 0
    async for call in calls:
        size += len(checked(call).args)
        if chunk and (len(chunk) >= CHUNK_ROWS or size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], len(call.args)
        chunk.append(call)
    if chunk:
        yield chunk
