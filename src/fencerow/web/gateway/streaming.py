"""A stream of events of one job, as text/event-stream: what is told at each news, signs of life, and its ends.

The lines of text are written here: a library for them would bring each stream a task and a second way to end.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeVar

from fencerow.web.gateway.route import Answer, Call
from fencerow.web.gateway.watching import Watch, Watching
from fencerow.web.reading.callers import caller_of
from fencerow.web.settings import WebSettings

KEEP_ALIVE_S = 15.0
RETRY_MS = 2_000

W = TypeVar("W", bound=Watch[Any])


class Telling(Protocol):
    """What one stream tells its reader, each thing once."""

    @property
    def is_over(self) -> bool:
        """Whether all was told, or no more can be."""
        ...

    def events(self) -> AsyncIterator[bytes]:
        """What is there now that the reader has not been told."""
        ...

    def gone(self) -> bytes:
        """The event of a job that is not there any more, or not for this reader."""
        ...


def streamed(call: Call, watching: Watching[W], watch: W, telling: Telling) -> Answer:
    """The answer that tells a job's events as they come; it has a seat among the streams of its caller."""
    seat = call.streams.seat(caller_of(call.grant.id, call.origin.address))
    # A proxy that gathers a while what it passes on would keep events back.
    return Answer(
        200,
        headers={"x-accel-buffering": "no"},
        content=_stream(call, watching, watch, telling),
        content_type="text/event-stream",
        seat=seat,
    )


async def _stream(call: Call, watching: Watching[W], watch: W, telling: Telling) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    until = loop.time() + WebSettings.of(call.app.config).web_stream_s
    leaving = asyncio.ensure_future(call.leaving.wait())
    leaving.add_done_callback(lambda _: watch.changed.set())
    try:
        with watching.watching(watch):
            yield f"retry: {RETRY_MS}\n\n".encode()
            while (left_s := until - loop.time()) > 0 and not call.leaving.is_set():
                if not await watch.news(min(KEEP_ALIVE_S, left_s)):
                    yield b": still here\n\n"
                    continue
                if watch.is_gone or (watch.look and not call.grant.reaches(watch.look.queue)):
                    yield telling.gone()
                    return
                async for events in telling.events():
                    if events:
                        yield events
                if telling.is_over:
                    return
            # All streams of a gateway that leaves end at once: their readers come to others one after the other.
            yield f"retry: {random.randint(RETRY_MS // 4, RETRY_MS * 2)}\n\n".encode()  # noqa: S311
    finally:
        leaving.cancel()
