"""Mutexes over HTTP: which are held, and by whom."""

from __future__ import annotations

from fencerow.guards.mutex.mutexes import MutexRecord
from fencerow.web.gateway.reached import everywhere
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Instant, Told
from fencerow.web.gateway.telling import told
from fencerow.web.gateway.turns import ListQuery
from fencerow.web.tokens.scope import Scope


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
    Route(
        "GET", "/v1/mutexes", "listMutexes", list_mutexes, Scope.READ, {200: MutexList},
        query=ListQuery, tag="turns",
    ),
)  # fmt: skip
