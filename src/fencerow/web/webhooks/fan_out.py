"""`deliver_webhooks(app)`: the app's workers tell endpoints of the ends of jobs."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from fencerow.core.app.app import JobsApp
from fencerow.core.errors import JobGone, JobNotFound, MissingExtra
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import JobRecord, NewJob
from fencerow.core.store.hints import hints_of
from fencerow.db.run import joining
from fencerow.events.declare import consumer
from fencerow.events.event import Event
from fencerow.guards.lent import arun_back
from fencerow.traces.carrying import carried
from fencerow.web.webhooks import deliveries
from fencerow.web.webhooks import endpoints as store
from fencerow.web.webhooks.body import body_of
from fencerow.web.webhooks.declared import DeclareEndpoints, WebhookTo, checked
from fencerow.web.webhooks.delivering import Delivering
from fencerow.web.webhooks.endpoint import Endpoint
from fencerow.web.webhooks.job import JOB, QUEUE, delivery_job, turn_of
from fencerow.web.webhooks.settings import allowed_of

ENDED = "job."
NEEDED = "h11"  # comes with the extra; who has it can post


def deliver_webhooks(app: JobsApp, *, endpoints: Sequence[WebhookTo] = ()) -> None:
    """Let this app's workers tell the endpoints of webhooks how jobs end. Call it once, where the app is made.

    `endpoints`: those that this app names. Its workers make them when they start, and change them when they are
    declared otherwise, as long as nobody else has changed them.

    They read the ends of all jobs, of whatever app, as a group of the event bus, and run the jobs that deliver. At
    least one app whose workers run must say this; several may.

    Raises:
        MissingExtra: `fencerow[web]` is not installed here.
        DeclarationError: it was said before, or a name is declared twice.
        InvalidInput, WebhookUrlRefused: an endpoint cannot be as it is declared.
    """
    if importlib.util.find_spec(NEEDED) is None:
        raise MissingExtra(
            "webhooks cannot be sent", f"{NEEDED} is not installed", "pip install 'fencerow[web]'"
        )
    declared = checked(endpoints, allowed_of(app.config)) if endpoints else []
    app.job(name=JOB, queue=QUEUE, process=False)(Delivering(app).deliver)
    consumer(app, group=store.GROUP, topics=store.TOPICS, partitions=1)(FanOut(app).tell)
    if declared:
        app.add_chore(DeclareEndpoints(lambda: app.client, declared))


class FanOut:
    """Makes of an event a delivery for each endpoint that wants it."""

    def __init__(self, app: JobsApp) -> None:
        self._app = app

    async def tell(self, event: Event) -> None:
        """One event: its deliveries and their jobs, in the transaction that acknowledges it."""
        if event.data["name"] == JOB or event.key is None:
            return  # of the ends of deliveries nobody is told
        known = await self._app.engine.arun(store.read())
        if not known:
            return
        ended = await self._ended(event.key)
        wanting = [each for each in known if _wants(each, event, ended)]
        if not wanting:
            return
        jobs = [self._job(each, event, ended) for each in wanting]
        made = [_delivery(*each, event, ended) for each in zip(wanting, jobs, strict=True)]
        making = deliveries.make(made, jobs)
        async with event.transaction() as connection:
            submitted = await arun_back(self._app, joining(making, connection), connection)
        self._app.engine.wake(hints_of(submitted))  # what this misses, workers find by themselves

    async def _ended(self, job_id: str) -> JobRecord | None:
        try:
            return await self._app.client.aget(job_id)
        except (JobGone, JobNotFound):
            return None  # ephemeral, or removed by retention: the event says the rest

    def _job(self, endpoint: Endpoint, event: Event, ended: JobRecord | None) -> NewJob:
        key = ended.exclusive if ended is not None and ended.exclusive is not None else str(event.key)
        return delivery_job(
            self._app.client.packing,
            attempts_max=endpoint.attempts_max,
            turn=turn_of(endpoint.id, endpoint.in_order, key),
            actor="webhooks",
            headers=carried(None if ended is None else ended.headers),
        )


def _wants(endpoint: Endpoint, event: Event, ended: JobRecord | None) -> bool:
    tags = (ended.tags if ended is not None else None) or []
    return endpoint.wants(event.topic.removeprefix(ENDED), event.data["queue"], event.data["name"], tags)


def _delivery(
    endpoint: Endpoint, job: NewJob, event: Event, ended: JobRecord | None
) -> deliveries.NewDelivery:
    return deliveries.NewDelivery(
        endpoint_id=endpoint.id,
        event_id=event.id,
        webhook_id=f"msg_{new_id().replace('-', '')}",
        topic=event.topic,
        ended_id=str(event.key),
        turn=job.exclusive,
        body=body_of(event, ended, with_result=endpoint.with_result),
        job_id=job.id,
    )
