"""Chunks of output, as they are stored and read. No I/O.

An offset is a million times the attempt, and the number of the chunk in it. So a later attempt continues the stream
without having read where it stands, and offsets that a reader keeps stay good.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fencerow.core.errors import InvalidInput, MalformedPayload
from fencerow.core.model.job import At
from fencerow.core.model.value import ValueCodec
from fencerow.db.text import shown
from fencerow.output.errors import ChunkRefused

IN_ATTEMPT: Final = 1_000_000
DATA = ValueCodec.of(Any, payload_bytes_max=2**31)
TEXT = ValueCodec.of(str, payload_bytes_max=2**31)


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk that a job has emitted. `data`: the text, the bytes or the JSON data, as it was emitted.

    `offset`: its place in the stream; it grows, but not by one. `attempt`: which one emitted it. A chunk of another
    attempt than the one before begins a new part: what came in the part before may come once more. `at_us`:
    microseconds by the database's clock.
    """

    offset: int
    attempt: int
    data: Any
    at_us: int

    at = At("at_us")


class ChunkGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Chunks that were written together, as they are stored. `last`: the offset of the last one."""

    last: int
    attempt: int
    chunks: int
    data: str
    at_us: int = 0

    at = At("at_us")


class _Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """A chunk that is no text."""

    bytes: str | None = None
    json: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(list[str | _Stored])


def offset_of(attempt: int, number: int) -> int:
    """The place of a chunk of an attempt; the first one has the number 1."""
    return attempt * IN_ATTEMPT + number


def encoded(data: object, bytes_max: int) -> bytes:
    """A chunk as it is stored.

    Raises:
        ChunkRefused: it is too large, or is neither text nor bytes nor JSON data.
    """
    try:
        if isinstance(data, str):
            found = TEXT.encode(data)
        elif isinstance(data, bytes | bytearray | memoryview):
            found = msgspec.json.encode(_Stored(bytes=base64.b64encode(data).decode()))
        else:
            found = b'{"json":' + DATA.encode(data) + b"}"
    except InvalidInput as error:
        raise ChunkRefused(
            f"job.emit got {shown(data)}: {error.what}", error.why, "emit text, bytes or JSON data"
        ) from None
    if len(found) > bytes_max:
        raise ChunkRefused(
            f"job.emit got a chunk of {len(found)} bytes as JSON",
            f"one may have {bytes_max} (output_chunk_bytes_max)",
            "emit it in parts, or emit where the data is",
        )
    return found


def joined(chunks: Sequence[bytes]) -> bytes:
    """Encoded chunks as one group has them."""
    return b"[" + b",".join(chunks) + b"]"


def opened(group: ChunkGroup, plain: bytes, after: int) -> list[Chunk]:
    """The chunks of a group behind this offset.

    Raises:
        MalformedPayload: they cannot be read.
    """
    try:
        found = [_data(each) for each in _decoder.decode(plain)]
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise MalformedPayload(
            f"the output at offset {group.last} cannot be read", str(error)[:200], "something else wrote it"
        ) from None
    first = group.last - len(found) + 1
    return [
        Chunk(offset=offset, attempt=group.attempt, data=data, at_us=group.at_us)
        for offset, data in enumerate(found, first)
        if offset > after
    ]


def _data(stored: str | _Stored) -> Any:
    if isinstance(stored, str):
        return stored
    if stored.bytes is not None:
        return base64.b64decode(stored.bytes, validate=True)
    return msgspec.json.decode(stored.json)
