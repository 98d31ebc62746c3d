"""The handler of a delivery's job: one POST, and what becomes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from random import random

from fencerow.core.app.app import JobsApp
from fencerow.core.errors import MissingExtra
from fencerow.core.model.control import Fail, Retry, Snooze
from fencerow.core.telemetry import Fact
from fencerow.core.worker.context import Job
from fencerow.db.run import joining
from fencerow.guards.lent import arun_back
from fencerow.traces.carrying import sent_along
from fencerow.web.webhooks import deliveries
from fencerow.web.webhooks.deliveries import DueDelivery, PostAttempt
from fencerow.web.webhooks.errors import PostFailed
from fencerow.web.webhooks.job import RETRY_AFTER_S_MAX, delay_s
from fencerow.web.webhooks.settings import allowed_of

log = logging.getLogger("fencerow.webhooks")

GONE = 410
ASKS_TO_WAIT = (429, 503)
UNSIGNED_S = 60.0  # until somebody has installed what is missing, or another worker takes it
SPREAD_S = 5.0  # so that those that waited for a probe do not come all at once


class Delivering:
    """Sends what the job's delivery says, and notes what was answered."""

    def __init__(self, app: JobsApp) -> None:
        self._app = app
        self._allow = allowed_of(app.config)

    async def deliver(self, job: Job) -> None:
        """One attempt. A crash between the POST and the note sends it again, under the same webhook-id."""
        due = await self._app.engine.arun(deliveries.admit(job.id))
        if due is None:
            return
        if due.state != "enabled":
            raise Fail(f"the endpoint {due.endpoint} is {due.state}")
        if due.wait_s is not None:
            raise Snooze(
                due.wait_s + random() * SPREAD_S,  # noqa: S311 (spreads, hides nothing)
                f"the endpoint {due.endpoint} is left alone for a while",
            )
        attempt, retry_after_s = await self._post(due, sent_along(job.headers))
        outcome = attempt.failure or "delivered"
        self._app.telemetry.emit(
            Fact.WEBHOOK_SENT, outcome=outcome, status=attempt.status, duration_s=attempt.took_s
        )
        if attempt.failure is None:
            async with job.transaction() as connection:
                arrived = deliveries.note_arrived(job.id, attempt)
                await arun_back(self._app, joining(arrived, connection), connection)
            return
        await self._failed(job, due, attempt, retry_after_s)

    async def _post(self, due: DueDelivery, trace: Mapping[str, str]) -> tuple[PostAttempt, float | None]:
        from fencerow.web.webhooks.posting import post  # with h11: only where something is sent

        headers = {**_signed(due), **trace}
        began = time.monotonic()
        try:
            reply = await post(due.url, due.body, headers, timeout_s=due.timeout_s, allow=self._allow)
        except PostFailed as error:
            return PostAttempt(time.monotonic() - began, None, error.kind.value), None
        failure = None if 200 <= reply.status < 300 else f"status_{reply.status}"
        wait_s = reply.retry_after_s if reply.status in ASKS_TO_WAIT else None
        return PostAttempt(reply.took_s, reply.status, failure), wait_s

    async def _failed(
        self, job: Job, due: DueDelivery, attempt: PostAttempt, retry_after_s: float | None
    ) -> None:
        """Note it, and say when it is tried again, if it is."""
        told = (
            f"the endpoint {due.endpoint} answered {attempt.status}"
            if attempt.status
            else (f"the endpoint {due.endpoint} did not answer: {attempt.failure}")
        )
        if attempt.status == GONE:
            if await self._app.engine.arun(deliveries.note_gone(job.id, attempt, version=due.version)):
                log.warning("the endpoint %s answered 410 and is told nothing more", due.endpoint)
                raise Fail(told)
        elif (
            await self._app.engine.arun(deliveries.note_failed(job.id, attempt, is_probe=due.is_probe))
            is None
        ):
            return
        after_s = delay_s(job.failures + 1)
        if retry_after_s is not None:
            after_s = max(after_s, min(retry_after_s, RETRY_AFTER_S_MAX))
        raise Retry(after_s, told)


def _signed(due: DueDelivery) -> dict[str, str]:
    """The headers, signed by each live secret.

    Raises:
        Snooze: it is a key pair, and nothing here can sign with one: no attempt is used up for that.
    """
    from fencerow.web.webhooks.pairs import signer_of
    from fencerow.web.webhooks.signing import signed_headers

    try:
        signers = [signer_of(each) for each in due.secrets]
    except MissingExtra as error:
        log.error("webhooks to the endpoint %s cannot be signed here: %s", due.endpoint, error)
        raise Snooze(UNSIGNED_S, str(error)) from None
    return signed_headers(due.webhook_id, due.now_us // 1_000_000, due.body, signers)
