"""Queues over HTTP: look at them, pause one, let it go on. Names stand in the body: they may hold a slash."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from fencerow.command.times import iso
from fencerow.operators.known_queues import nobody_knows
from fencerow.operators.queue_verbs import QUEUE_LENGTH_MAX
from fencerow.operators.summaries import summaries
from fencerow.web.gateway.reached import reached
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.gateway.telling import told
from fencerow.web.tokens.scope import Scope

QueueName = Annotated[str, Meta(min_length=1, max_length=QUEUE_LENGTH_MAX)]
Reason = Annotated[str, Meta(min_length=1, max_length=500)]


class Pause(Told, frozen=True, kw_only=True):
    """Since when a queue is paused, by whom and why."""

    at: Instant
    by: str | None
    reason: str | None


class QueueDocument(Told, frozen=True, kw_only=True):
    """A queue: its live jobs by state, for how many seconds its first due job has waited, whether it is paused."""

    queue: str
    jobs: dict[str, int]
    oldest_due_s: float | None
    paused: Pause | None


class QueueList(Told, frozen=True, kw_only=True):
    """The queues that hold a live job or are paused, by name."""

    queues: list[QueueDocument]


class PauseQueue(Given, frozen=True, kw_only=True):
    """Which queue, and why."""

    queue: QueueName
    reason: Reason | None = None


class ResumeQueue(Given, frozen=True, kw_only=True):
    """Which queue."""

    queue: QueueName


class QueueChanged(Told, frozen=True, kw_only=True):
    """How the queue stands now, and whether this changed it. `unknown`: no live job and no living worker knows it."""

    queue: str
    paused: bool
    changed: bool
    unknown: str | None = None


async def list_queues(call: Call) -> Answer:
    """The queues that hold a live job or are paused; a token for some queues sees these alone."""
    found = await call.client.arun(summaries(finished=False))
    shown = [queue for queue in found.values() if call.grant.reaches(queue["queue"])]
    return Answer(200, QueueList(queues=[_document(queue) for queue in shown]))


def _document(found: dict[str, Any]) -> QueueDocument:
    pause = found["paused"]
    paused = None if pause is None else {**pause, "at": iso(pause["at_us"])}
    return told(QueueDocument, {**found, "paused": paused})


async def pause(call: Call) -> Answer:
    """Stop claims from a queue until it is resumed, also across restarts. Running jobs go on. It may be repeated."""
    wanted: PauseQueue = call.body
    queue = reached(call, wanted.queue)
    changed = await call.acting.apause_queue(queue, reason=wanted.reason)
    # Which names are close is told to those alone who may see all queues.
    unknown = await call.client.arun(nobody_knows(queue)) if call.grant.queues is None else None
    return Answer(200, QueueChanged(queue=queue, paused=True, changed=changed, unknown=unknown))


async def resume(call: Call) -> Answer:
    """Let claims from a queue go on. It may be repeated."""
    queue = reached(call, call.body.queue)
    changed = await call.acting.aresume_queue(queue)
    return Answer(200, QueueChanged(queue=queue, paused=False, changed=changed))


ROUTES = (
    Route("GET", "/v1/queues", "listQueues", list_queues, Scope.READ, {200: QueueList}, tag="queues"),
    Route(
        "POST", "/v1/queues/pause", "pauseQueue", pause, Scope.OPERATE, {200: QueueChanged},
        body=PauseQueue, tag="queues",
    ),
    Route(
        "POST", "/v1/queues/resume", "resumeQueue", resume, Scope.OPERATE, {200: QueueChanged},
        body=ResumeQueue, tag="queues",
    ),
)  # fmt: skip
