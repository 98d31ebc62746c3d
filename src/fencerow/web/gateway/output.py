"""The output of a job as it comes, as text/event-stream: its parts, its chunks, its end.

The id of an event is the offset of the chunk. So whichever gateway the reader comes to with its `Last-Event-ID`, it is
told the rest, once.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Collection
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fencerow.command.times import iso
from fencerow.core.errors import InvalidInput, JobNotFound
from fencerow.core.model.state import FINAL
from fencerow.db.engine import Engine
from fencerow.output.model import Chunk
from fencerow.output.reading import GROUPS_MAX, page_of
from fencerow.output.storing import Emitting, Output, emitting, read_output
from fencerow.web.gateway.looking import UNREADABLE
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Instant, JobState, Told
from fencerow.web.gateway.streaming import streamed
from fencerow.web.gateway.watching import Watch, Watching, WatchingByApp, tell_standing
from fencerow.web.reading import headers as read
from fencerow.web.tokens.scope import Scope

PAUSE_MIN_S = 0.1  # chunks come many in a second
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
    return streamed(call, followers.of(call.app), Watch[Emitting](job.id), OutputTeller(call, job.id, place))


async def _look(engine: Engine, watches: Collection[Watch[Emitting]]) -> bool:
    """How the jobs stand, and what each has emitted last. What is new, a stream reads itself, at its reader's pace."""
    return await tell_standing(engine, watches, emitting)


followers = WatchingByApp[Watch[Emitting]](
    lambda engine: Watching(engine, _look, "jobs whose output is followed", PAUSE_MIN_S)
)


class OutputTeller:
    """Turns the output of a job into events, each once."""

    def __init__(self, call: Call, job_id: str, place: Place) -> None:
        self.job_id = job_id
        self.place = msgspec.structs.replace(place, ended=False)
        self._call = call
        self._attempt = 0
        self._is_unreadable = False

    @property
    def is_over(self) -> bool:
        """Whether the end was told, or that the rest cannot be read here."""
        return self.place.ended or self._is_unreadable

    async def events(self) -> AsyncIterator[bytes]:
        """What is there now behind the place, in pieces of one page; the end with it if it has come."""
        try:
            while (found := await self._read()) is not None:
                page = page_of(self._call.client, self.job_id, found, self.place.offset)
                told = b"".join(map(self._chunk, page.chunks))
                yield told + (self._end(page.job) if page.is_all else b"")
                if len(found.groups) < GROUPS_MAX:
                    return
        except UNREADABLE as error:  # it is sealed under another key, or was altered
            self._is_unreadable = True
            yield self._event("unreadable", UnreadableEvent(code=error.code))

    async def _read(self) -> Output | None:
        asked = read_output(self.job_id, self.place.offset, limit=GROUPS_MAX)
        return await self._call.app.engine.arun(asked)

    def gone(self) -> bytes:
        """The event of a job that is not there any more, or not for this reader."""
        return self._event("gone", msgspec.Raw(b"{}"))

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


ROUTES = (
    Route(
        "GET", "/v1/jobs/{id}/output", "getOutput", output, Scope.READ, {200: None, 204: None},
        query=OutputQuery, refusals=(JobNotFound, *UNREADABLE), waits=True, content_type="text/event-stream",
        accepts={"Last-Event-ID": "the id of the last event that came: what came since is told"},
    ),
)  # fmt: skip
