"""Bodies of a gigabyte, JSON a hundred thousand levels deep, and what grows while it is read: refused at once, in
memory that does not grow with them, beside good callers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from tools.attack.corpus import MEMORY_MIB_MAX
from tools.attack.good_callers import served
from tools.attack.place import Place, under_attack
from tools.attack.wire import HUNG_UP, read_answer

GIB = 2**30
PART = b"a" * 2**20
DEPTH = 100_000
PATIENCE_S = 120.0
AT_ONCE = 8


async def _counted() -> AsyncIterator[bytes]:
    """A gigabyte whose length is told."""
    for _ in range(GIB // len(PART)):
        yield PART


async def _chunked() -> AsyncIterator[bytes]:
    """A gigabyte in chunks, of which nobody knows how many will come."""
    async for part in _counted():
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


async def _lists() -> AsyncIterator[bytes]:
    yield b"[" * DEPTH + b"]" * DEPTH


async def _objects() -> AsyncIterator[bytes]:
    yield b'{"a":' * DEPTH + b"1" + b"}" * DEPTH


async def _in_arguments() -> AsyncIterator[bytes]:
    yield b'{"job":"pages","args":{"path":' + b"[" * DEPTH + b"]" * DEPTH + b"}}"


Parts = Callable[[], AsyncIterator[bytes]]
LENGTHS = {_lists: 2 * DEPTH, _objects: 6 * DEPTH + 1, _in_arguments: 32 + 2 * DEPTH, _counted: GIB}
BODIES: dict[str, tuple[Parts, str, int]] = {
    "1 GiB, its length told": (_counted, "all", 413),
    "1 GiB in chunks": (_chunked, "all", 413),
    "1 GiB from a stranger": (_counted, "nobody", 401),
    "1 GiB in chunks from a stranger": (_chunked, "nobody", 401),
    "lists 100,000 deep": (_lists, "all", 400),
    "objects 100,000 deep": (_objects, "all", 400),
    "arguments 100,000 deep": (_in_arguments, "all", 400),
}


def swamped(engine: str, _limit_s: float, _seed: int) -> dict[str, Any]:
    """Send each of them, several at once, while good callers ask."""
    with under_attack(engine) as place:
        before, rested = place.kept(), place.memory_mib()
        alone = asyncio.run(served(place, 4.0))
        stored = place.kept()
        found, beside = asyncio.run(_all(place))
        faults = [f"{name}: {each}" for name, each in found.items() if each["faults"]]
        faults += beside.refused
        most = place.memory_mib("VmHWM")
        return {
            "stands": not faults and most < MEMORY_MIB_MAX and place.tracebacks() == 0,
            "load": [round(each, 1) for each in os.getloadavg()],
            "at_once": AT_ONCE,
            "bodies": found,
            "faults": faults,
            "good_callers_alone": alone.told(),
            "good_callers_beside": beside.told(),
            "memory_mib_at_rest": round(rested, 1),
            "memory_mib_at_most": round(most, 1),
            "tracebacks_in_the_log": place.tracebacks(),
            "jobs_of_good_callers": alone.stored + beside.stored,
            "rows_before_and_after": _rows(before, stored, place.kept()),
        }


def _rows(*looks: dict[str, tuple[int, str]]) -> dict[str, list[int]]:
    names = [name for name in looks[0] if len({each[name][0] for each in looks}) > 1]
    return {name: [each[name][0] for each in looks] for name in names}


async def _all(place: Place) -> tuple[dict[str, Any], Any]:
    good = asyncio.create_task(served(place, 6.0))
    found = {}
    for name, (parts, token, status) in BODIES.items():
        told = await asyncio.gather(*(_sent(place, parts, token) for _ in range(AT_ONCE)))
        found[name] = {
            "statuses": sorted({each[0] for each in told}),
            "seconds_at_most": round(max(each[1] for each in told), 2),
            "mib_taken_at_most": round(max(each[2] for each in told) / 2**20, 1),
            # Who still writes when the connection is ended may not get to read why.
            "ended_before_the_answer_was_read": sum(each[0] == 0 for each in told),
            "faults": [each[0] for each in told if each[0] not in (0, status)],
        }
    return found, await good


async def _sent(place: Place, parts: Parts, token: str) -> tuple[int, float, int]:
    """The status of the answer, after how many seconds the connection was over, and how many bytes went out."""
    began, out = time.monotonic(), 0
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    length = LENGTHS.get(parts)
    told = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    writer.write(
        f"POST /v1/jobs:validate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{told}\r\n"
        f"Authorization: Bearer {place.tokens.get(token, token)}\r\n\r\n".encode()
    )
    status = asyncio.create_task(_status(reader))
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(*HUNG_UP):
            async for part in parts():
                writer.write(part)
                await writer.drain()
                out += len(part)
        found = await status
    writer.transport.abort()
    return found, time.monotonic() - began, out


async def _status(reader: asyncio.StreamReader) -> int:
    """The status that is answered; 0: the connection was ended before one was read."""
    try:
        return (await read_answer(reader)).status
    except HUNG_UP:
        return 0
