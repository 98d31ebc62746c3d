"""Exclusive keys over HTTP: which are in use, who has their turns and who waits."""

from __future__ import annotations

import msgspec

from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Instant, Told
from fencerow.web.gateway.telling import each, told
from fencerow.web.gateway.turns import Holder, ListQuery, Name, Shown, Waiter
from fencerow.web.tokens.scope import Scope


class KeySummary(Told, frozen=True, kw_only=True):
    """A key of which jobs are live. Counts end at 1,000."""

    key: str
    at_once: int
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
    at_once: int
    holders: list[Holder]
    waiting: list[Waiter]
    waiting_count: int
    now: Instant


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
    return Answer(200, told(KeyTurns, found, at_once=found.at_once))


ROUTES = (
    Route("GET", "/v1/exclusive", "listKeys", list_keys, Scope.READ, {200: KeyList}, query=ListQuery, tag="turns"),
    Route("GET", "/v1/exclusive/show", "showKey", show_key, Scope.READ, {200: KeyTurns}, query=KeyQuery, tag="turns"),
)  # fmt: skip
