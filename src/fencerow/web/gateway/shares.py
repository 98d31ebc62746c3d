"""Shares of queues over HTTP: their jobs and weights."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fencerow.command.times import iso
from fencerow.web.gateway.queues import QueueName
from fencerow.web.gateway.reached import reached
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.gateway.telling import told
from fencerow.web.tokens.scope import Scope


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


ROUTES = (
    Route("GET", "/v1/shares", "listShares", list_shares, Scope.READ, {200: ShareList}, query=ShareQuery, tag="turns"),
    Route(
        "POST", "/v1/shares/set", "setShare", set_share, Scope.OPERATE, {200: ShareChanged},
        body=SetShare, tag="turns",
    ),
)  # fmt: skip
