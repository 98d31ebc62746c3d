"""A job's events as they come, as text/event-stream: its state, its progress, its lines, its end.

The id of an event says all that its reader has been told so far, by what the database keeps of the job. So whichever
gateway the reader comes to with its `Last-Event-ID`, it is told the rest, once.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from hashlib import blake2b
from typing import Protocol

import msgspec

from fencerow.command.times import iso
from fencerow.core.errors import InvalidInput, JobNotFound
from fencerow.core.model.state import FINAL, State
from fencerow.operators.watching import KeptLine, WatchedJob
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Instant, JobState, Told
from fencerow.web.gateway.streaming import streamed
from fencerow.web.gateway.watcher import JobWatch, watchers
from fencerow.web.gateway.watching import Watching
from fencerow.web.reading import headers as read
from fencerow.web.tokens.scope import Scope

ID = re.compile(r"([0-9a-f]{12})\.([0-9a-f]{8})\.([0-9a-f]{8})\.([0-9]{1,18})(\.end)?", re.ASCII)
NOTHING = "0" * 8


class JobStanding(Protocol):
    """What is told of how a job stands; the record of a job and a look have it alike."""

    @property
    def id(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def attempt(self) -> int: ...
    @property
    def failures(self) -> int: ...
    @property
    def run_at_us(self) -> int: ...
    @property
    def claimed_at_us(self) -> int | None: ...
    @property
    def ended_at_us(self) -> int | None: ...
    @property
    def cancel_requested_at_us(self) -> int | None: ...


class StateEvent(Told, frozen=True, kw_only=True):
    """`state`, `end`, `gone`: how the job stands, or stood when it was last seen."""

    id: str
    queue: str
    state: JobState
    attempt: int
    failures: int
    run_at: Instant | None
    claimed_at: Instant | None
    ended_at: Instant | None
    cancel_requested_at: Instant | None


class ProgressEvent(Told, frozen=True, kw_only=True):
    """`progress`: what the attempt said last. What it said between two looks is not told."""

    attempt: int
    progress: float
    note: str | None


class LogEvent(Told, frozen=True, kw_only=True):
    """`log`: a line that is kept with the job."""

    attempt: int
    at: Instant | None
    level: str
    message: str


class StreamSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader has been told of a job: which state and progress, up to which line, and whether the end."""

    job: str
    state: str = NOTHING
    progress: str = NOTHING
    position: int = 0
    ended: bool = False

    @property
    def id(self) -> str:
        """The id of the event after which a reader has seen this."""
        return f"{self.job}.{self.state}.{self.progress}.{self.position}{'.end' if self.ended else ''}"


def seen_of(job_id: str, last_event_id: str | None) -> StreamSeen:
    """What the reader has seen who sends this.

    Raises:
        InvalidInput: it is of no event, or of one of another job.
    """
    tail = job_id[-12:]
    if not last_event_id:
        return StreamSeen(job=tail)
    found = ID.fullmatch(last_event_id)
    if found is None or found[1] != tail:
        raise InvalidInput(
            f"Last-Event-ID is {ascii(last_event_id)[:80]}",
            "it is of no event of this job",
            "send the id of the last event that came, or none to begin anew",
        )
    return StreamSeen(
        job=tail, state=found[2], progress=found[3], position=int(found[4]), ended=bool(found[5])
    )


def state_event(job: JobStanding) -> StateEvent:
    """How it stands."""
    return StateEvent(
        id=job.id,
        queue=job.queue,
        state=job.state.value,
        attempt=job.attempt,
        failures=job.failures,
        run_at=iso(job.run_at_us),
        claimed_at=iso(job.claimed_at_us),
        ended_at=iso(job.ended_at_us),
        cancel_requested_at=iso(job.cancel_requested_at_us),
    )


def mark(document: msgspec.Struct) -> str:
    """A few digits that differ when the document does."""
    return blake2b(msgspec.json.encode(document), digest_size=4).hexdigest()


class StreamTeller:
    """Turns what was seen of a job into events, each once."""

    def __init__(self, watching: Watching[JobWatch], watch: JobWatch, seen: StreamSeen) -> None:
        self.seen = seen
        self._watching = watching
        self._watch = watch

    @property
    def is_over(self) -> bool:
        """Whether the end was told."""
        return self.seen.ended

    async def events(self) -> AsyncIterator[bytes]:
        """The events for what is new, in this order: the state, lines, progress, the end when all else is told."""
        if (look := self._watch.look) is None:
            return
        lines = self._watch.take()
        if self._watch.wants_lines:
            self._watching.hurry()
        state = state_event(look)
        yield b"".join(
            (
                self._state(state),
                *(self._line(line) for line in lines),
                self._progress(look),
                self._end(look, state),
            )
        )

    def gone(self) -> bytes:
        """The event of a job that is not there any more, or not for this reader, who is then not told how it stands."""
        look = self._watch.look if self._watch.is_gone else None
        return self._event("gone", msgspec.Raw(b"{}") if look is None else state_event(look))

    def _state(self, state: StateEvent) -> bytes:
        if (found := mark(state)) == self.seen.state:
            return b""
        self.seen = msgspec.structs.replace(self.seen, state=found, ended=False)
        return self._event("state", state)

    def _line(self, line: KeptLine) -> bytes:
        self.seen = msgspec.structs.replace(self.seen, position=line.id)
        return self._event(
            "log",
            LogEvent(attempt=line.attempt, at=iso(line.at_us), level=line.level, message=line.message),
        )

    def _progress(self, look: WatchedJob) -> bytes:
        if look.progress is None:
            return b""
        document = ProgressEvent(attempt=look.attempt, progress=look.progress, note=look.progress_note)
        if (found := mark(document)) == self.seen.progress:
            return b""
        self.seen = msgspec.structs.replace(self.seen, progress=found)
        return self._event("progress", document)

    def _end(self, look: WatchedJob, state: StateEvent) -> bytes:
        if not look.is_final or self.seen.position < look.last_line or self.seen.ended:
            return b""
        self.seen = msgspec.structs.replace(self.seen, ended=True)
        return self._event("end", state)

    def _event(self, kind: str, document: object) -> bytes:
        return f"id: {self.seen.id}\nevent: {kind}\ndata: ".encode() + msgspec.json.encode(document) + b"\n\n"


async def events(call: Call) -> Answer:
    """The job's events as they come: `state` as it stands at first, `log`, `progress`, and `end` when it has ended.

    A stream lasts a few minutes; whoever comes again with `Last-Event-ID` is told what came since, by whichever
    gateway. After `end` it is answered 204. `gone`: the job was removed, or is not for this token any more.
    """
    job = await call.seen(call.params["id"])
    seen = seen_of(job.id, read.last_event_id_of(call.headers.get("last-event-id", ())))
    if seen.ended and job.state in FINAL and mark(state_event(job)) == seen.state:
        return Answer(204)
    watching, watch = watchers.of(call.app), JobWatch(job.id, seen.position)
    return streamed(call, watching, watch, StreamTeller(watching, watch, seen))


ROUTES = (
    Route(
        "GET", "/v1/jobs/{id}/events", "getEvents", events, Scope.READ, {200: None, 204: None},
        refusals=(JobNotFound,), waits=True, content_type="text/event-stream",
        accepts={"Last-Event-ID": "the id of the last event that came: what came since is told"},
    ),
)  # fmt: skip
