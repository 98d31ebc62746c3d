"""Looks at deliveries for people and programs: which there are, how they stand, every attempt. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from fencerow.core.model.job import At, AtOrNone
from fencerow.db.run import Param, Row, Steps, as_int, as_int_or_none, execute, operation, text_or_none

NEWEST = 2**63 - 1  # no event has this number
DeliveryState = Literal["pending", "delivered", "failed"]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint is told of one end. Instants are microseconds since 1970 by the database's clock.

    `webhook_id` is the same with every attempt. `pending`: the job `job_id` delivers it still; `failed`: none does.
    `status`, `failure`, `last_us` and `took_s` tell the last attempt; no status: there was no answer.
    """

    endpoint: str
    event_id: int
    webhook_id: str
    topic: str
    ended_id: str
    job_id: str
    state: DeliveryState
    created_at_us: int
    attempts: int
    delivered_at_us: int | None
    status: int | None
    failure: str | None
    last_us: int | None
    took_s: float | None
    turn: str | None  # the exclusive key of its job, where an order is kept
    attempts_max: int  # of its endpoint
    now_us: int

    created_at = At("created_at_us")
    delivered_at = AtOrNone("delivered_at_us")
    last = AtOrNone("last_us")
    now = At("now_us")


class WebhookAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a delivery. `failure`: its kind, None if it was taken."""

    number: int
    at_us: int
    took_s: float
    status: int | None
    failure: str | None

    at = At("at_us")


@dataclass(frozen=True, slots=True)
class DeliveriesMeant:
    """Which deliveries are meant. Instants are microseconds since 1970. `over`: only what can be redelivered."""

    endpoint: str | None = None
    state: DeliveryState | None = None
    job: str | None = None
    webhook_id: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    before: int | None = None
    behind: str | None = None  # an endpoint: of the event `before` itself, what is told those behind it
    over: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether all of an endpoint, or of all, are meant: then a page of them is read and no more."""
        filters = (self.state, self.job, self.webhook_id, self.since_us, self.until_us)
        return not self.over and all(each is None for each in filters)

    @property
    def named(self) -> dict[str, Param]:
        """As the queries take it."""
        return {
            "name": self.endpoint,
            "state": self.state,
            "ended": self.job,
            "webhook": self.webhook_id,
            "since": self.since_us,
            "until": self.until_us,
            "before": self.before,
            "behind": self.behind,
            "over": self.over,
        }


@operation(alone=True, repeatable=True, writes="")
def listed(meant: DeliveriesMeant, *, limit: int) -> Steps[list[Delivery]]:
    """Those that are meant, the newest first."""
    if meant.is_plain:
        before = NEWEST if meant.before is None else meant.before
        rows = yield from execute(
            "list_newest_deliveries", name=meant.endpoint, before=before, behind=meant.behind, limit=limit
        )
    elif meant.job is None:
        rows = yield from execute("list_deliveries", meant.named, limit=limit)
    else:
        rows = yield from execute("list_deliveries_of_job", meant.named, limit=limit)
    return [_delivery(row) for row in rows]


@operation(alone=True, repeatable=True, writes="")
def attempts(endpoint: str, event_id: int) -> Steps[list[WebhookAttempt]]:
    """Every attempt of one delivery, in their order."""
    rows = yield from execute("read_attempts", name=endpoint, event=event_id)
    return [
        WebhookAttempt(
            number=as_int(row[0]),
            at_us=as_int(row[1]),
            took_s=float(str(row[2])),
            status=as_int_or_none(row[3]),
            failure=text_or_none(row[4]),
        )
        for row in rows
    ]


def _delivery(row: Row) -> Delivery:
    return Delivery(
        endpoint=str(row[0]),
        event_id=as_int(row[1]),
        webhook_id=str(row[2]),
        topic=str(row[3]),
        ended_id=str(row[4]),
        job_id=str(row[5]),
        state=msgspec.convert(row[6], DeliveryState),
        created_at_us=as_int(row[7]),
        attempts=as_int(row[8]),
        delivered_at_us=as_int_or_none(row[9]),
        status=as_int_or_none(row[10]),
        failure=text_or_none(row[11]),
        last_us=as_int_or_none(row[12]),
        took_s=None if row[13] is None else float(str(row[13])),
        turn=text_or_none(row[14]),
        attempts_max=as_int(row[15]),
        now_us=as_int(row[16]),
    )
