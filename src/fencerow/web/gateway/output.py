"""The output of a job as it comes, as text/event-stream: its parts, its chunks, its end.

The id of an event is the offset of the chunk. So whichever gateway the reader comes to with its `Last-Event-ID`, it is
told the rest, once.
"""

from __future__ import annotations

import asyncio
import base64
import random
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fencerow.command.times import iso
from fencerow.core.errors import FencerowError, InvalidInput, JobNotFound
from fencerow.core.model.state import FINAL
from fencerow.output.model import Chunk
from fencerow.output.reading import GROUPS_MAX, page_of
from fencerow.output.storing import Emitting, read_output
from fencerow.web.gateway.looking import UNREADABLE
from fencerow.web.gateway.output_watcher import OutputWatcher, Tail, output_watcher_of
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Instant, JobState, Told
from fencerow.web.reading import headers as read
from fencerow.web.reading.callers import caller_of
from fencerow.web.settings import WebSettings
from fencerow.web.tokens.scope import Scope

KEEP_ALIVE_S = 15.0
RETRY_MS = 2_000
# What ends a line for programs that split text as Unicode says, though not in an event stream. JSON has it in texts.
LINE_ENDS = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))
ID = re.compile(r"([0-9a-f]{12})\.([0-9]{1,18})(\.end)?", re.ASCII)


class PartEvent(Told, frozen=True, kw_only=True):
    """`part`: what follows comes from this attempt."""

    attempt: int


class ChunkEvent(Told, frozen=True, kw_only=True, omit_defaults=True):
    """`chunk`: what the job has emitted, as text, as JSON data, or as bytes in base64."""

    offset: int
    attempt: int
    at: Instant | None
    text: str | msgspec.UnsetType = msgspec.UNSET
    json: Any = msgspec.UNSET
    bytes: str | msgspec.UnsetType = msgspec.UNSET


class EndEvent(Told, frozen=True, kw_only=True):
    """`end`: how the job stands that has ended. All of its output was told."""

    state: JobState
    attempt: int


class UnreadableEvent(Told, frozen=True, kw_only=True):
    """`unreadable`: what follows cannot be read by this gateway, and why."""

    code: str


class OutputQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Behind which offset; `Last-Event-ID` counts more."""

    after: Annotated[int, Meta(ge=0, le=10**18)] = 0


class Place(msgspec.Struct, frozen=True):
    """Up to where a reader has been told, and whether of the end, too."""

    tail: str
    offset: int
    ended: bool = False

    @property
    def id(self) -> str:
        """The id of the event after which a reader is there."""
        return f"{self.tail}.{self.offset}{'.end' if self.ended else ''}"


def place_of(job_id: str, last_event_id: str | None, after: int) -> Place:
    """Where the reader is who sends this.

    Raises:
        InvalidInput: it is of no event, or of one of another job.
    """
    tail = job_id[-12:]
    if not last_event_id:
        return Place(tail, after)
    found = ID.fullmatch(last_event_id)
    if found is None or found[1] != tail:
        raise InvalidInput(
            f"Last-Event-ID is {ascii(last_event_id)[:80]}",
            "it is of no event of this job's output",
            "send the id of the last event that came, or none to begin anew",
        )
    return Place(tail, int(found[2]), bool(found[3]))


async def output(call: Call) -> Answer:
    """What the job emits, as it comes: `part` where an attempt begins, `chunk`, and `end` when it has ended.

    A stream lasts a few minutes; whoever comes again with `Last-Event-ID`, or with `after`, is told what came since, by
    whichever gateway. After `end` it is answered 204. `gone`: the job was removed, or is not for this token any more.
    """
    job = await call.seen(call.params["id"])
    place = place_of(job.id, read.last_event_id_of(call.headers.get("last-event-id", ())), call.query.after)
    if place.ended and job.state in FINAL:
        return Answer(204)
    teller = OutputTeller(call, job.id, place)
    seat = call.streams.seat(caller_of(call.grant.id, call.origin.address))
    # A proxy that gathers a while what it passes on would keep chunks back.
    return Answer(
        200,
        headers={"x-accel-buffering": "no"},
        content=_stream(call, output_watcher_of(call.app), teller),
        content_type="text/event-stream",
        seat=seat,
    )


class OutputTeller:
    """Turns the output of a job into events, each once."""

    def __init__(self, call: Call, job_id: str, place: Place) -> None:
        self.job_id = job_id
        self.place = msgspec.structs.replace(place, ended=False)
        self._call = call
        self._attempt = 0

    async def events(self) -> AsyncIterator[bytes]:
        """What is there now behind the place, in pieces of one page; the end with it if it has come."""
        while True:
            found = await self._call.app.engine.arun(
                read_output(self.job_id, self.place.offset, limit=GROUPS_MAX)
            )
            if found is None:
                return
            page = page_of(self._call.client, self.job_id, found, self.place.offset)
            told = b"".join(map(self._chunk, page.chunks))
            yield told + (self._end(page.job) if page.is_all else b"")
            if len(found.groups) < GROUPS_MAX:
                return

    def gone(self) -> bytes:
        """The event of a job that is not there any more, or not for this reader."""
        return self._event("gone", msgspec.Raw(b"{}"))

    def unreadable(self, error: FencerowError) -> bytes:
        """The event of output that cannot be read here: it is sealed under another key, or was altered."""
        return self._event("unreadable", UnreadableEvent(code=error.code))

    def _chunk(self, chunk: Chunk) -> bytes:
        part = (
            b"" if chunk.attempt == self._attempt else self._event("part", PartEvent(attempt=chunk.attempt))
        )
        self._attempt = chunk.attempt
        self.place = msgspec.structs.replace(self.place, offset=chunk.offset)
        said = {"text": chunk.data} if isinstance(chunk.data, str) else _said(chunk.data)
        document = ChunkEvent(offset=chunk.offset, attempt=chunk.attempt, at=iso(chunk.at_us), **said)
        return part + self._event("chunk", document)

    def _end(self, job: Emitting) -> bytes:
        self.place = msgspec.structs.replace(self.place, ended=True)
        return self._event("end", EndEvent(state=job.state.value, attempt=job.attempt))

    def _event(self, kind: str, document: object) -> bytes:
        data = msgspec.json.encode(document)
        for found, escaped in LINE_ENDS:
            data = data.replace(found, escaped)
        return f"id: {self.place.id}\nevent: {kind}\ndata: ".encode() + data + b"\n\n"


def _said(data: object) -> dict[str, Any]:
    return {"bytes": base64.b64encode(data).decode()} if isinstance(data, bytes) else {"json": data}


async def _stream(call: Call, watcher: OutputWatcher, teller: OutputTeller) -> AsyncIterator[bytes]:
    loop, tail = asyncio.get_running_loop(), Tail(teller.job_id)
    until = loop.time() + WebSettings.of(call.app.config).web_stream_s
    leaving = asyncio.ensure_future(call.leaving.wait())
    leaving.add_done_callback(lambda _: tail.changed.set())
    try:
        with watcher.following(tail):
            yield f"retry: {RETRY_MS}\n\n".encode()
            while (left_s := until - loop.time()) > 0 and not call.leaving.is_set():
                if not await tail.news(min(KEEP_ALIVE_S, left_s)):
                    yield b": still here\n\n"
                    continue
                if tail.is_gone or (tail.job and not call.grant.reaches(tail.job.queue)):
                    yield teller.gone()
                    return
                try:
                    async for events in teller.events():
                        if events:
                            yield events
                except UNREADABLE as error:
                    yield teller.unreadable(error)
                    return
                if teller.place.ended:
                    return
            # All streams of a gateway that leaves end at once: their readers come to others one after the other.
            yield f"retry: {random.randint(RETRY_MS // 4, RETRY_MS * 2)}\n\n".encode()  # noqa: S311
    finally:
        leaving.cancel()


ROUTES = (
    Route(
        "GET", "/v1/jobs/{id}/output", "getOutput", output, Scope.READ, {200: None, 204: None},
        query=OutputQuery, refusals=(JobNotFound, *UNREADABLE), waits=True, content_type="text/event-stream",
        accepts={"Last-Event-ID": "the id of the last event that came: what came since is told"},
    ),
)  # fmt: skip
