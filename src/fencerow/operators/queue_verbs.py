"""Pausing a queue and letting it go on, sync and async: what `Client` is given for it."""

from __future__ import annotations

from fencerow.core.client.desk import Desk
from fencerow.core.client.moving import check_reason
from fencerow.core.db.run import Procedure, WakeUp, ask
from fencerow.core.model.text import check_text
from fencerow.core.model.wakeup import Queued, encode
from fencerow.core.store import store
from fencerow.operators.queues import PausedQueue, pause_queue, paused_queues, resume_queue

QUEUE_LENGTH_MAX = 100


class QueueVerbs(Desk):
    """Each method has an async twin with an `a` in front."""

    def pause_queue(self, queue: str, *, reason: str | None = None) -> bool:
        """Stop claims from a queue, also across restarts; false when it was paused already."""
        return self.run(pausing(queue, self.actor, reason))

    async def apause_queue(self, queue: str, *, reason: str | None = None) -> bool:
        """`pause_queue` for async code."""
        return await self.arun(pausing(queue, self.actor, reason))

    def resume_queue(self, queue: str) -> bool:
        """Let claims from a queue go on; false when it was not paused."""
        return self.run(resuming(queue))

    async def aresume_queue(self, queue: str) -> bool:
        """`resume_queue` for async code."""
        return await self.arun(resuming(queue))

    def paused_queues(self) -> list[PausedQueue]:
        """The paused queues: since when, by whom, why."""
        return self.run(ask(paused_queues()))

    async def apaused_queues(self) -> list[PausedQueue]:
        """`paused_queues` for async code."""
        return await self.arun(ask(paused_queues()))


def pausing(queue: str, actor: str | None, reason: str | None) -> Procedure[bool]:
    """Pause the queue; false when it was paused already."""
    check_text(queue, "queue", QUEUE_LENGTH_MAX)
    check_reason(reason)
    return (yield from ask(pause_queue(queue, actor=actor, reason=reason)))


def resuming(queue: str) -> Procedure[bool]:
    """Resume the queue, and wake its workers for what has gathered; false when it was not paused."""
    check_text(queue, "queue", QUEUE_LENGTH_MAX)
    if not (yield from ask(resume_queue(queue))):
        return False
    lanes, now_us = yield from ask(store.lanes(queue))
    due = [Queued(queue, lane.priority or 0, lane.first_us) for lane in lanes if lane.first_us <= now_us]
    yield WakeUp([encode(message) for message in due])
    return True
