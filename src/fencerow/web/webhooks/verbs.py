"""`Webhooks(client)`: endpoints, and what became of what they were told; sync and async."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, get_args

import fencerow.web.webhooks.deliveries as store
import fencerow.web.webhooks.looking as looking
from fencerow.core.client.base import ClientBase
from fencerow.core.errors import InvalidInput
from fencerow.core.model.ids import parse_id
from fencerow.core.model.instants import instant_us
from fencerow.core.store.hints import hints_of
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, WakeUp, ask
from fencerow.db.text import check_text
from fencerow.web.errors import EndpointConflict
from fencerow.web.webhooks.deliveries import Again
from fencerow.web.webhooks.endpoint import check_endpoint_name
from fencerow.web.webhooks.endpoint_verbs import EndpointVerbs, getting
from fencerow.web.webhooks.job import delivery_job
from fencerow.web.webhooks.looking import DeliveriesMeant, Delivery, DeliveryState, WebhookAttempt

LIMIT: Final = 100
LIMIT_MAX: Final = 10_000
PORTION: Final = 100  # redelivered in one transaction
STATES: Final = get_args(DeliveryState)


class Webhooks(EndpointVerbs):
    """The endpoints that are told of the ends of jobs: `Webhooks(app.client)`. Each method has an async twin with an
    `a` in front.

    `allow`: where webhooks may go beyond public addresses, which is only looked at when a URL is given.
    """

    # --- deliveries --------------------------------------------------------------------------------

    @verb
    def deliveries(
        self,
        endpoint: str | None = None,
        *,
        state: DeliveryState | None = None,
        job: str | None = None,
        webhook_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        behind: str | None = None,
        limit: int = LIMIT,
    ) -> Procedure[list[Delivery]]:
        """Deliveries, the newest first: of one endpoint, in one state, of the end of one job, under one webhook-id,
        made from `since` on and before `until`. For the next page pass the last `event_id` as `before`, and its
        `endpoint` as `behind`: an event is told to several.

        Raises:
            InvalidInput: one of them cannot be used.
        """
        meant = meant_of(endpoint, state, job, webhook_id, since, until, before, behind)
        return (yield from ask(looking.listed(meant, limit=check_limit(limit))))

    adeliveries = averb(deliveries)

    @verb
    def attempts(self, endpoint: str, event_id: int) -> Procedure[list[WebhookAttempt]]:
        """Every attempt of one delivery, in their order. Empty where there was none."""
        return (yield from ask(looking.attempts(check_endpoint_name(endpoint), event_id)))

    aattempts = averb(attempts)

    @verb
    def redeliver(
        self,
        endpoint: str | None = None,
        *,
        state: DeliveryState | None = "failed",
        job: str | None = None,
        webhook_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        dry_run: bool = False,
    ) -> Procedure[list[Delivery]]:
        """Send deliveries once more, with the same body under the same webhook-id; returns them as they were found.

        Those that failed, or with `state=None` also those that arrived. What a job delivers still is left alone, and so
        is what an endpoint that is not enabled was to be told. With `dry_run` it only says which they are. May be
        repeated: each is sent once more only when it is over again.

        Raises:
            InvalidInput: nothing says which are meant, or more than 10,000 are. Nothing is sent.
            EndpointNotFound: there is no such endpoint. EndpointConflict: it is not enabled.
        """
        if all(each is None for each in (endpoint, job, webhook_id, since, until)):
            raise InvalidInput(
                "nothing says which deliveries are meant",
                "all of them were too many",
                "name an endpoint, a job or a time",
            )
        if endpoint is not None:
            yield from _enabled(endpoint)
        meant = replace(meant_of(endpoint, state, job, webhook_id, since, until), over=True)
        found = yield from ask(looking.listed(meant, limit=LIMIT_MAX + 1))
        if len(found) > LIMIT_MAX:
            raise InvalidInput(
                f"more than {LIMIT_MAX} deliveries are meant",
                "so many are redelivered at once",
                "narrow it by since and until",
            )
        if not dry_run:
            found = yield from redelivering(found, self._client)
        return found

    aredeliver = averb(redeliver)


def redelivering(found: Sequence[Delivery], client: ClientBase) -> Procedure[list[Delivery]]:
    """Send these once more, some in each transaction; returns those of which this caller did it. The oldest first: so
    they keep their order."""
    done: list[Delivery] = []
    oldest_first = list(reversed(found))
    for begin in range(0, len(found), PORTION):
        some = oldest_first[begin : begin + PORTION]
        jobs = [
            delivery_job(client.packing, attempts_max=each.attempts_max, turn=each.turn, actor=client.actor)
            for each in some
        ]
        again = [
            Again(each.endpoint, each.event_id, each.job_id, job.id)
            for each, job in zip(some, jobs, strict=True)
        ]
        submitted = yield from ask(store.redeliver(again, jobs))
        ids = {job.id for job in submitted}
        done += [each for each, job in zip(some, jobs, strict=True) if job.id in ids]
        if messages := hints_of(submitted):
            yield WakeUp(messages)
    return done


def _enabled(name: str) -> Procedure[None]:
    found = yield from getting(name)
    if found.state != "enabled":
        raise EndpointConflict(
            f"the endpoint {name!r} is {found.state}", "it is told nothing", "enable it first"
        )


def meant_of(
    endpoint: str | None,
    state: DeliveryState | None,
    job: str | None,
    webhook_id: str | None,
    since: datetime | None,
    until: datetime | None,
    before: int | None = None,
    behind: str | None = None,
) -> DeliveriesMeant:
    """Which deliveries are meant, checked.

    Raises:
        InvalidInput: one of them cannot be used.
    """
    if state is not None and state not in STATES:
        raise InvalidInput(
            f"state is {ascii(state)[:60]}", f"{', '.join(STATES)} are known", "choose one of them"
        )
    return DeliveriesMeant(
        endpoint=None if endpoint is None else check_endpoint_name(endpoint),
        state=state,
        job=None if job is None else parse_id(job),
        webhook_id=None if webhook_id is None else check_text(webhook_id, "the webhook-id", 100),
        since_us=None if since is None else instant_us(since, "since"),
        until_us=None if until is None else instant_us(until, "until"),
        before=before,
        behind=None if behind is None else check_endpoint_name(behind),
    )


def check_limit(limit: int) -> int:
    """A number of deliveries, 1 to 10,000.

    Raises:
        InvalidInput: it is none.
    """
    if isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
        raise InvalidInput(f"limit is {limit}", f"1 to {LIMIT_MAX} are shown at once", "correct limit")
    return limit
