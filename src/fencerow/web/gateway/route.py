"""A route as a record, what its function is given, and what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from fencerow.app import App
from fencerow.client import Client
from fencerow.core.app.submitter import Submitter
from fencerow.core.errors import FencerowError, JobNotFound, ResultTimeout
from fencerow.core.model.job import JobRecord
from fencerow.core.model.person import Person, Via
from fencerow.core.wing import witnessed
from fencerow.web.reading import headers as read
from fencerow.web.reading.room import Room, Seat
from fencerow.web.tokens.scope import Grant, Scope

T = TypeVar("T")

WAIT_S_MAX = 60.0


class Hidden(JobNotFound):
    """What this caller may not see is answered as what is not there."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request comes from: what is told to logs, and carried on to the job."""

    request_id: str
    correlation_id: str
    traceparent: str | None = None
    tracestate: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way through a route's function.

    `standing`: why the gateway takes no requests now, if it takes none; `leaving` is set when it stops.
    `params` are those of the path. `query` and `body` are of the types that the route declares. `headers` have names in
    lower case; of a header that came twice, the values stand in the order in which they came. `gone` is done when the
    caller has hung up.
    """

    app: App
    grant: Grant
    origin: Origin
    base: str  # the path below which the gateway is mounted
    params: Mapping[str, str]
    query: Any
    body: Any
    headers: Mapping[str, Sequence[str]]
    gone: asyncio.Future[None]
    standing: str | None
    leaving: asyncio.Event
    streams: Room

    @property
    def client(self) -> Client:
        """The verbs that look and wait."""
        return self.app.client

    @property
    def acting(self) -> Client:
        """The verbs that change something: what they change is told under the token's name."""
        common = self.app.client
        made = Client(
            witnessed(common.engine, self.person),
            actor=self.grant.name,
            telemetry=common.telemetry,
            ready=common.make_ready,
        )
        made.encode_arguments, made.packing, made.mend = (
            common.encode_arguments,
            common.packing,
            common.mend,
        )
        return made

    @property
    def person(self) -> Person:
        """Who changes something by this request, for those who watch over that."""
        return Person(self.grant.name, Via.HTTP, self.origin.address, self.origin.request_id)

    @property
    def submits(self) -> Submitter:
        """The verbs that submit: what they store is told to be submitted under the token's name."""
        return self.app.submits_as(self.grant.name)

    @property
    def reason(self) -> str:
        """What the timeline of a job says beside who changed it."""
        return f"over HTTP, request {self.origin.request_id}"

    async def while_connected(self, work: Awaitable[T]) -> T | None:
        """Wait for the work as long as the caller waits and the gateway stays; None after that. The work is cancelled
        then."""
        task = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self.leaving.wait())
        first: set[asyncio.Future[Any]] = {task, self.gone, leaving}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()
            leaving.cancel()

    async def until_ended(self, job_id: str, wait_s: float) -> None:
        """Wait until the job has ended, `wait_s` seconds are over, the caller has hung up or the gateway stops."""
        try:
            await self.while_connected(self.client.aoutcome(job_id, wait_s))
        except ResultTimeout:
            pass  # it is answered as it stands

    async def seen(self, job_id: str) -> JobRecord:
        """The job of this id, if this caller may see jobs of its queue.

        Raises:
            JobNotFound: it is not there, or not for this caller. The two look alike.
        """
        record = await self.client.aget(job_id)
        if not self.grant.reaches(record.queue):
            raise hidden(job_id)
        return record


def hidden(job_id: str) -> Hidden:
    """The answer for what is not this caller's, word for word that for what is not there."""
    return Hidden(
        f"there is no job {job_id}",
        "neither live nor finished; retention may have removed it",
        "check the id",
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a route's function answers: a document that is encoded as JSON, bytes as they are, or a stream of bytes.

    `seat` is left when the answer has ended, however it ends.
    """

    status: int
    document: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | AsyncIterator[bytes] | None = None
    content_type: str = "application/json"
    seat: Seat | None = None


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A route that takes no query parameters."""


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the gateway.

    `scope`: what a token must be good for; None is open to all. `answers`: by status, the type of the document, None
    for one without. `refusals`: the errors of ours that it can meet beside those of every route, for the document of
    OpenAPI; `missing`: those that say that what was asked for is not there. `waits`: it may last as long as its caller
    wishes, so it counts in a room of its own; `may_wait`: only where its caller asks for it. `in_maintenance`: it
    answers while the gateways are under maintenance. `of_itself`: what the gateway says of itself, to probes: as often
    as they like, and also while it takes no requests.
    `is_raw`: its function gets the body as it came, in bytes, and judges them itself.
    `takes_slashes`: whatever stands behind the path's last slash is its last parameter, further slashes too.
    """

    method: str
    path: str
    name: str
    answer: Callable[[Call], Awaitable[Answer]]
    scope: Scope | None
    answers: Mapping[int, type[msgspec.Struct] | None]
    query: type[msgspec.Struct] = NoQuery
    body: type[msgspec.Struct] | None = None
    is_raw: bool = False
    refusals: Sequence[type[FencerowError]] = ()
    missing: Sequence[type[FencerowError]] = ()
    waits: bool = False
    may_wait: bool = False
    in_maintenance: bool = False
    of_itself: bool = False
    takes_slashes: bool = False
    tag: str = "jobs"
    accepts: Mapping[str, str] = field(
        default_factory=dict
    )  # request headers of its own, with what they mean
    content_type: str = "application/json"

    def waits_for(self, query: object, headers: Mapping[str, Sequence[str]]) -> bool:
        """Whether this request may last as long as its caller wishes."""
        return self.waits or (self.may_wait and asked_wait_s(query, headers) > 0)


def asked_wait_s(query: object, headers: Mapping[str, Sequence[str]]) -> float:
    """How long the caller asks to wait: what the query or `Prefer` says, the longer of the two, cut to what may be."""
    told: float = getattr(query, "wait", 0.0)
    return max(told, min(read.wait_of(headers.get("prefer", ())), WAIT_S_MAX))
