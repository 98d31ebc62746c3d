"""Events over HTTP: the groups that read them, how far they are behind, what they parked, and delivering it again.

The data of events is not shown: it may be secret.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fencerow.command.times import iso
from fencerow.core.errors import InvalidInput
from fencerow.db.run import ask
from fencerow.errors import InvalidTopic, UnknownGroup
from fencerow.events.asides import Parked, parked, redrive
from fencerow.events.bus import told as wake
from fencerow.events.consumers import partitions
from fencerow.events.groups import group_named, groups
from fencerow.events.lag import lags, retention_estimate
from fencerow.events.settings import EventSettings
from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import ErrorDocument, Given, Instant, Told, error_document
from fencerow.web.gateway.telling import each, told
from fencerow.web.gateway.turns import Shown
from fencerow.web.tokens.scope import Scope

GroupName = Annotated[str, Meta(min_length=1, max_length=200)]
Position = Annotated[int, Meta(ge=0, le=10**18)]
POSITIONS_MAX = 1_000


class Reader(Told, frozen=True, kw_only=True):
    """A partition of a group: who reads it, and up to which position."""

    part: int
    cursor: int
    holder: str | None
    is_alive: bool
    trying: int | None


class GroupDocument(Told, frozen=True, kw_only=True):
    """A group that reads events."""

    name: str
    topics: list[str]
    partitions: int
    generation: int
    created_at: Instant
    replayed_at: Instant | None
    alarmed_at: Instant | None
    readers: list[Reader]


class GroupList(Told, frozen=True, kw_only=True):
    """All groups, by name."""

    groups: list[GroupDocument]


class LagDocument(Told, frozen=True, kw_only=True):
    """How far a group is behind. `events` ends at 10,000 for a partition; docs/guide/events.md has the words."""

    group: str
    head: int
    cursor: int
    events: int
    seconds: float
    waiting: int
    parked: int
    readers: int
    alarmed_at: Instant | None
    unplaced: int
    unplaced_s: float


class LogDocument(Told, frozen=True, kw_only=True):
    """What the log holds, how fast it grows, and for how long what retention keeps lasts at that rate."""

    head: int
    per_second: float
    oldest_age_s: float | None
    lasts_s: float | None


class LagList(Told, frozen=True, kw_only=True):
    """All groups, or the one that was named, and the log."""

    groups: list[LagDocument]
    log: LogDocument


class ParkedDocument(Told, frozen=True, kw_only=True):
    """An event that a group was not able to handle, with its last error. What is of the event is null if it is gone."""

    group: str
    position: int
    parked_at: Instant | None
    event_id: int | None
    topic: str | None
    key: str | None
    published_at: Instant | None
    deliveries: int | None
    error: ErrorDocument | None


class ParkedList(Told, frozen=True, kw_only=True):
    """Parked events, those first that were parked first."""

    parked: list[ParkedDocument]


class GroupQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which group; of all if none is named."""

    group: GroupName | None = None


class ParkedQuery(GroupQuery, frozen=True, forbid_unknown_fields=True):
    """Of which group, and how many."""

    limit: Shown = 50


class Redrive(Given, frozen=True, kw_only=True):
    """Which parked events of a group: those at `positions`, or `all` of them."""

    group: GroupName
    positions: Annotated[list[Position], Meta(min_length=1, max_length=POSITIONS_MAX)] | None = None
    all: bool = False


class Redriven(Told, frozen=True, kw_only=True):
    """The positions of the events that are delivered again; others were not parked."""

    group: str
    positions: list[int]


async def list_groups(call: Call) -> Answer:
    """The groups that read events: their topics, partitions and readers."""
    everywhere(call, "groups of events")
    found = []
    for group in await call.client.arun(ask(groups())):
        readers = await call.client.arun(ask(partitions(group.name)))
        found.append(told(GroupDocument, group, readers=each(Reader, readers)))
    return Answer(200, GroupList(groups=found))


async def show_lag(call: Call) -> Answer:
    """How far groups are behind, in events and seconds, and how fast the log grows."""
    everywhere(call, "groups of events")
    await _check(call, call.query.group)
    kept = EventSettings.of(call.app.config).retention_events_max
    found = await call.client.arun(ask(lags(call.query.group)))
    log = await call.client.arun(ask(retention_estimate(keep=kept)))
    return Answer(200, LagList(groups=each(LagDocument, found), log=told(LogDocument, log)))


async def list_parked(call: Call) -> Answer:
    """Events that groups were not able to handle, with the error of their last delivery."""
    everywhere(call, "groups of events")
    await _check(call, call.query.group)
    found = await call.client.arun(ask(parked(call.query.group, limit=call.query.limit)))
    return Answer(200, ParkedList(parked=[_parked(one) for one in found]))


async def redrive_parked(call: Call) -> Answer:
    """Deliver parked events again, with a new budget. Later events of the same key have gone on before them."""
    everywhere(call, "groups of events")
    wanted: Redrive = call.body
    if wanted.all == (wanted.positions is not None):
        raise InvalidInput(
            "the body does not say which events are meant",
            "either `positions` or `all` is expected",
            "GET /v1/events/parked lists them",
        )
    moved = await call.acting.arun(ask(redrive(wanted.group, wanted.positions)))
    wake(call.app.engine)
    return Answer(200, Redriven(group=wanted.group, positions=sorted(moved)))


async def _check(call: Call, group: str | None) -> None:
    """Refuse the name of a group that is not there: a list of nothing would look well."""
    if group is not None:
        await call.client.arun(ask(group_named(group)))


def _parked(found: Parked) -> ParkedDocument:
    event = found.event
    return ParkedDocument(
        group=found.group,
        position=found.seq,
        parked_at=iso(found.parked_at_us),
        event_id=event.id if event else None,
        topic=event.topic if event else None,
        key=event.key if event else None,
        published_at=iso(event.published_at_us) if event else None,
        deliveries=event.deliveries if event else None,
        error=error_document(found.error),
    )


ROUTES = (
    Route("GET", "/v1/events/groups", "listGroups", list_groups, Scope.READ, {200: GroupList}, tag="events"),
    Route(
        "GET", "/v1/events/lag", "showLag", show_lag, Scope.READ, {200: LagList},
        query=GroupQuery, refusals=(UnknownGroup,), tag="events",
    ),
    Route(
        "GET", "/v1/events/parked", "listParked", list_parked, Scope.READ, {200: ParkedList},
        query=ParkedQuery, refusals=(UnknownGroup,), tag="events",
    ),
    Route(
        "POST", "/v1/events/redrive", "redriveEvents", redrive_parked, Scope.OPERATE, {200: Redriven},
        body=Redrive, refusals=(UnknownGroup, InvalidTopic), tag="events",
    ),
)  # fmt: skip
