"""Who runs when, over HTTP: exclusive keys, limits, shares, mutexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fencerow.core.errors import InvalidInput
from fencerow.errors import UnknownLimit
from fencerow.guards.mutex.mutexes import MutexRecord
from fencerow.limits.definition import Breaker, Limit, Rate
from fencerow.limits.limits import LimitRecord
from fencerow.limits.looking import LimitTurns
from fencerow.web.gateway.queues import QueueName, Reason
from fencerow.web.gateway.reached import everywhere, reached
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Instant, JobState, Told, iso
from fencerow.web.gateway.telling import each, told
from fencerow.web.tokens.scope import Scope

SHOWN_MAX = 200

Shown = Annotated[int, Meta(ge=1, le=SHOWN_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=400)]


class Holder(Told, frozen=True, kw_only=True):
    """A job that has a turn, and who runs it; nobody does where `worker_id` is null."""

    id: str
    queue: str
    name: str
    state: JobState
    attempt: int
    strict: bool
    slots: int
    since: Instant
    run_at: Instant
    started: Instant | None
    deadline: Instant | None
    worker_id: str | None
    worker: str | None
    host: str | None
    pid: int | None


class Waiter(Told, frozen=True, kw_only=True):
    """A job that waits for a turn; `paused`: its queue is."""

    id: str
    queue: str
    name: str
    priority: int
    attempt: int
    strict: bool
    slots: int
    run_at: Instant
    submitted: Instant
    paused: bool


# --- exclusive keys ----------------------------------------------------------------------------------------


class KeySummary(Told, frozen=True, kw_only=True):
    """A key of which jobs are live. Counts end at 1,000."""

    key: str
    slots: int
    running: int
    queued: int
    waiting: int
    held_since: Instant | None
    waits_since: Instant | None
    now: Instant


class KeyList(Told, frozen=True, kw_only=True):
    """Keys, those first where somebody has waited longest. `is_whole`: all were looked at."""

    keys: list[KeySummary]
    is_whole: bool


class KeyTurns(Told, frozen=True, kw_only=True):
    """Who has a key's turns, at most 100 of them, and who waits, the next one first."""

    key: str
    slots: int
    holders: list[Holder]
    waiting: list[Waiter]
    waiting_count: int
    now: Instant


class ListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many."""

    limit: Shown = 100


class KeyQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which key, and how many of those that wait."""

    key: Name
    waiting: Shown = 20


async def list_keys(call: Call) -> Answer:
    """Exclusive keys of which jobs are live, those first where somebody has waited longest."""
    everywhere(call, "exclusive keys")
    found = await call.client.exclusive.aknown(limit=call.query.limit)
    return Answer(200, KeyList(keys=each(KeySummary, found.keys), is_whole=found.is_whole))


async def show_key(call: Call) -> Answer:
    """Who has the turns of an exclusive key, and who waits for one."""
    everywhere(call, "exclusive keys")
    found = await call.client.exclusive.aget(call.query.key, waiting=call.query.waiting)
    return Answer(200, told(KeyTurns, found, slots=found.slots))


# --- limits ------------------------------------------------------------------------------------------------


class RateDocument(Told, frozen=True, kw_only=True):
    """At most `count` starts in each `per_s` seconds."""

    count: float
    per_s: float
    burst: int
    strict: bool


class BreakerDocument(Told, frozen=True, kw_only=True):
    """No starts for `stop_s` seconds after so many failures within `within_s`, then `trials` that try."""

    failures: int
    within_s: float
    stop_s: float
    trials: int


class LimitDocument(Told, frozen=True, kw_only=True):
    """What a limit says, and who said it last. `error`: its row was changed by hand, and means nothing any more."""

    limit: str
    slots: int | None = None
    rate: RateDocument | None = None
    hours: list[str] | None = None
    breaker: BreakerDocument | None = None
    per_key: bool = False
    error: str | None = None
    set_at: Instant | None
    set_by: str | None
    reason: str | None
    revision: int
    version: int


class LimitList(Told, frozen=True, kw_only=True):
    """All limits, by name."""

    limits: list[LimitDocument]


class LimitState(Told, frozen=True, kw_only=True):
    """A limit, how many may start under it now and why not more, who has its turns, and who waits for one."""

    definition: LimitDocument
    room: int
    why: str | None
    again_at: Instant | None
    holders: list[Holder]
    waiting: list[Waiter]
    waiting_count: int
    now: Instant


class RateGiven(Given, frozen=True, kw_only=True):
    """At most `count` starts in each `per_s` seconds."""

    count: float
    per_s: float = 1.0
    burst: int = 1
    strict: bool = False


class BreakerGiven(Given, frozen=True, kw_only=True):
    """No starts for `stop_s` seconds after so many failures within `within_s`, then `trials` that try."""

    failures: int
    within_s: float = 60.0
    stop_s: float = 60.0
    trials: int = 1


class SetLimit(Given, frozen=True, kw_only=True):
    """The whole of a limit: what is left out, it does not say any more."""

    limit: Name
    slots: int | None = None
    rate: RateGiven | None = None
    hours: Sequence[str] = ()
    breaker: BreakerGiven | None = None
    per_key: bool = False
    reason: Reason | None = None


class LimitChanged(Told, frozen=True, kw_only=True):
    """Whether the limit was another one before."""

    limit: str
    changed: bool


class LimitQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which limit, or `NAME/KEY` of one per key, and how many of those that wait."""

    limit: Name
    waiting: Shown = 20


async def list_limits(call: Call) -> Answer:
    """All limits, by name."""
    everywhere(call, "limits")
    found = await call.client.limits.aknown()
    return Answer(200, LimitList(limits=[_limit(record) for record in found]))


async def show_limit(call: Call) -> Answer:
    """A limit: what it says, whether it lets something start, who has its turns and who waits."""
    everywhere(call, "limits")
    found = await call.client.limits.alook(call.query.limit, waiting=call.query.waiting)
    room, why, again_us = _room(found)
    return Answer(
        200,
        told(
            LimitState,
            found,
            definition=_limit(found.limit, found.name),
            room=room,
            why=why,
            again_at=iso(again_us),
        ),
    )


async def set_limit(call: Call) -> Answer:
    """Make a limit, or put this in the place of the one there is.

    It counts from the next start on, in all processes; what runs goes on. It may be repeated.
    """
    everywhere(call, "limits")
    wanted: SetLimit = call.body
    rate, breaker = wanted.rate, wanted.breaker
    limit = Limit(
        wanted.limit,
        slots=wanted.slots,
        rate=None if rate is None else Rate(rate.count, rate.per_s, rate.burst, rate.strict),
        hours=tuple(wanted.hours),
        breaker=None
        if breaker is None
        else Breaker(breaker.failures, breaker.within_s, breaker.stop_s, breaker.trials),
        per_key=wanted.per_key,
    )
    changed = await call.acting.limits.adefine(limit, reason=wanted.reason)
    return Answer(200, LimitChanged(limit=limit.name, changed=changed))


def _limit(record: LimitRecord, name: str | None = None) -> LimitDocument:
    said: dict[str, Any]
    try:
        limit = record.limit
    except InvalidInput as error:
        said = {"error": error.what}
    else:
        said = {
            "slots": limit.slots,
            "rate": None if limit.rate is None else told(RateDocument, limit.rate),
            "hours": list(limit.hours),
            "breaker": None if limit.breaker is None else told(BreakerDocument, limit.breaker),
            "per_key": limit.per_key,
        }
    return LimitDocument(
        limit=name or record.name,
        set_at=iso(record.set_at_us),
        set_by=record.set_by,
        reason=record.reason,
        revision=record.revision,
        version=record.version,
        **said,
    )


def _room(found: LimitTurns) -> tuple[int, str | None, int | None]:
    try:
        room = found.room
    except InvalidInput:  # `definition` tells it
        return 0, None, None
    return room.count, room.why or None, room.again_us


# --- shares ------------------------------------------------------------------------------------------------


class ShareDocument(Told, frozen=True, kw_only=True):
    """A share of a queue; an empty `share` stands for the jobs without one."""

    queue: str
    share: str
    weight: int
    queued: int
    running: int
    first_due: Instant | None
    set_at: Instant | None
    set_by: str | None


class ShareList(Told, frozen=True, kw_only=True):
    """Shares that have live jobs or a weight, by queue and name."""

    shares: list[ShareDocument]


class ShareQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which queue; of all, or of those of the token, if none is named."""

    queue: QueueName | None = None


class SetShare(Given, frozen=True, kw_only=True):
    """How many jobs a share starts where one of weight 1 starts one. 1 forgets what was said of it."""

    queue: QueueName
    share: Annotated[str, Meta(max_length=256)]
    weight: Annotated[int, Meta(ge=1, le=1000)]


class ShareChanged(Told, frozen=True, kw_only=True):
    """Whether the share had another weight before."""

    queue: str
    share: str
    weight: int
    changed: bool


async def list_shares(call: Call) -> Answer:
    """The shares of a queue, or of all that the token is good for, with their weights and jobs."""
    queue = call.query.queue
    found = await call.client.shares.aknown(None if queue is None else reached(call, queue))
    shown = [
        told(ShareDocument, share, first_due=iso(share.first_us))
        for share in found
        if call.grant.reaches(share.queue)
    ]
    return Answer(200, ShareList(shares=shown))


async def set_share(call: Call) -> Answer:
    """Set the weight of a share, from its next turn on. It may be repeated."""
    wanted: SetShare = call.body
    queue = reached(call, wanted.queue)
    changed = await call.acting.shares.aweigh(queue, wanted.share, wanted.weight)
    return Answer(200, told(ShareChanged, wanted, changed=changed))


# --- mutexes -----------------------------------------------------------------------------------------------


class MutexDocument(Told, frozen=True, kw_only=True):
    """A mutex that is held. `stale`: its holder has not renewed it, and anybody may take it over."""

    key: str
    state: str
    token: int
    holder: str | None
    purpose: str | None
    since: Instant
    until: Instant
    stale_s: float
    host: str
    pid: int
    job_id: str | None
    job_name: str | None
    attempt: int | None
    freed_at: Instant | None
    freed_by: str | None
    freed_reason: str | None
    now: Instant


class MutexList(Told, frozen=True, kw_only=True):
    """The mutexes that are held, the longest first."""

    mutexes: list[MutexDocument]


async def list_mutexes(call: Call) -> Answer:
    """The mutexes that are held, the longest first."""
    everywhere(call, "mutexes")
    found = await call.client.mutexes.aheld(limit=call.query.limit)
    return Answer(200, MutexList(mutexes=[told(MutexDocument, one, state=_standing(one)) for one in found]))


def _standing(found: MutexRecord) -> str:
    return "stale" if found.is_stale else "held"


ROUTES = (
    Route("GET", "/v1/exclusive", "listKeys", list_keys, Scope.READ, {200: KeyList}, query=ListQuery, tag="turns"),
    Route("GET", "/v1/exclusive/show", "showKey", show_key, Scope.READ, {200: KeyTurns}, query=KeyQuery, tag="turns"),
    Route("GET", "/v1/limits", "listLimits", list_limits, Scope.READ, {200: LimitList}, tag="turns"),
    Route(
        "GET", "/v1/limits/show", "showLimit", show_limit, Scope.READ, {200: LimitState},
        query=LimitQuery, refusals=(UnknownLimit,), tag="turns",
    ),
    Route(
        "POST", "/v1/limits/set", "setLimit", set_limit, Scope.OPERATE, {200: LimitChanged},
        body=SetLimit, tag="turns",
    ),
    Route("GET", "/v1/shares", "listShares", list_shares, Scope.READ, {200: ShareList}, query=ShareQuery, tag="turns"),
    Route(
        "POST", "/v1/shares/set", "setShare", set_share, Scope.OPERATE, {200: ShareChanged},
        body=SetShare, tag="turns",
    ),
    Route(
        "GET", "/v1/mutexes", "listMutexes", list_mutexes, Scope.READ, {200: MutexList},
        query=ListQuery, tag="turns",
    ),
)  # fmt: skip
