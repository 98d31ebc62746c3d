"""Limits over HTTP: what each says, whether it lets something start, and a change of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fencerow.command.times import iso
from fencerow.core.errors import InvalidInput
from fencerow.errors import InvalidWindow, UnknownLimit, UnknownZone
from fencerow.limits.definition import Limit
from fencerow.limits.limits import LimitRecord
from fencerow.limits.looking import LimitTurns
from fencerow.limits.rate import Breaker, Rate
from fencerow.web.gateway.problem import missing
from fencerow.web.gateway.queues import Reason
from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.gateway.telling import told
from fencerow.web.gateway.turns import Holder, Name, Shown, Waiter
from fencerow.web.tokens.scope import Scope


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
    at_once: int | None = None
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
    at_once: int | None = None
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
    try:
        found = await call.client.limits.alook(call.query.limit, waiting=call.query.waiting)
    except UnknownLimit as error:
        raise missing(error) from None
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
    try:
        limit = _limit_of(wanted)
    except UnknownZone as error:
        # By itself it tells of a row that was stored: 409. Here the caller named the zone.
        raise InvalidWindow(error.what, error.why, error.fix) from None
    changed = await call.acting.limits.adefine(limit, reason=wanted.reason)
    return Answer(200, LimitChanged(limit=limit.name, changed=changed))


def _limit_of(wanted: SetLimit) -> Limit:
    rate, breaker = wanted.rate, wanted.breaker
    return Limit(
        wanted.limit,
        at_once=wanted.at_once,
        rate=None if rate is None else Rate(rate.count, rate.per_s, rate.burst, rate.strict),
        hours=tuple(wanted.hours),
        breaker=None
        if breaker is None
        else Breaker(breaker.failures, breaker.within_s, breaker.stop_s, breaker.trials),
        per_key=wanted.per_key,
    )


def _limit(record: LimitRecord, name: str | None = None) -> LimitDocument:
    said: dict[str, Any]
    try:
        limit = record.limit
    except InvalidInput as error:
        said = {"error": error.what}
    else:
        said = {
            "at_once": limit.at_once,
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


ROUTES = (
    Route("GET", "/v1/limits", "listLimits", list_limits, Scope.READ, {200: LimitList}, tag="turns"),
    Route(
        "GET", "/v1/limits/show", "showLimit", show_limit, Scope.READ, {200: LimitState},
        query=LimitQuery, missing=(UnknownLimit,), tag="turns",
    ),
    Route(
        "POST", "/v1/limits/set", "setLimit", set_limit, Scope.OPERATE, {200: LimitChanged},
        body=SetLimit, refusals=(InvalidWindow,), tag="turns",
    ),
)  # fmt: skip
