"""Pausing a queue and letting it go on, sync and async: what `Client` is given for it."""

from __future__ import annotations

from fencerow.core.client.base import ClientBase
from fencerow.core.client.moving import check_reason
from fencerow.core.db.run import Procedure, WakeUp, ask
from fencerow.core.db.verb import averb, verb
from fencerow.core.model.text import check_text
from fencerow.core.model.wakeup import Queued, encode
from fencerow.core.store import store
from fencerow.operators.queues import PausedQueue, pause_queue, paused_queues, resume_queue

QUEUE_LENGTH_MAX = 100


class QueueVerbs(ClientBase):
    """Each method has an async twin with an `a` in front."""

    @verb
    def pause_queue(self, queue: str, *, reason: str | None = None) -> Procedure[bool]:
        """Stop claims from a queue, also across restarts; returns false if it was paused already, and then
        changes nothing.

        Jobs that workers have claimed already go on. May be repeated.

        Raises:
            InvalidInput: the queue's name or the reason cannot be used.
        """
        check_text(queue, "queue", QUEUE_LENGTH_MAX)
        check_reason(reason)
        return (yield from ask(pause_queue(queue, actor=self.actor, reason=reason)))

    apause_queue = averb(pause_queue)

    @verb
    def resume_queue(self, queue: str) -> Procedure[bool]:
        """Allow claims from a queue again; returns false if it was not paused. Its workers learn of it at
        once. May be repeated.

        Raises:
            InvalidInput: the queue's name cannot be used.
        """
        check_text(queue, "queue", QUEUE_LENGTH_MAX)
        if not (yield from ask(resume_queue(queue))):
            return False
        lanes, now_us = yield from ask(store.lanes(queue))
        due = [Queued(queue, lane.priority or 0, lane.first_us) for lane in lanes if lane.first_us <= now_us]
        yield WakeUp([encode(message) for message in due])  # its workers, for what has gathered
        return True

    aresume_queue = averb(resume_queue)

    @verb
    def paused_queues(self) -> Procedure[list[PausedQueue]]:
        """The paused queues: since when, by whom, why."""
        return (yield from ask(paused_queues()))

    apaused_queues = averb(paused_queues)
