"""How a queue stands, of bounded counts and pauses. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.core.model.state import State
from fencerow.operators.queues import PausedQueue
from fencerow.web.dashboard.counting import LiveCount


@dataclass(slots=True)
class QueueStanding:
    """Live jobs of a queue. `due_us`: since when the first of its queued jobs has been due; None: none is due."""

    name: str
    queued: int = 0
    running: int = 0
    waiting: int = 0
    due_us: int | None = None
    pause: PausedQueue | None = None


def by_queue(live: Sequence[LiveCount], paused: Sequence[PausedQueue], now_us: int) -> list[QueueStanding]:
    """Each queue that has live jobs or is paused, the one first whose jobs have waited longest."""
    found: dict[str, QueueStanding] = {}
    for each in live:
        queue = found.setdefault(each.queue, QueueStanding(each.queue))
        if each.state is State.QUEUED:
            queue.queued = each.jobs
            is_due = each.first_us is not None and each.first_us <= now_us
            queue.due_us = each.first_us if is_due else None
        elif each.state is State.RUNNING:
            queue.running = each.jobs
        elif each.state is State.WAITING:
            queue.waiting = each.jobs
    for pause in paused:
        found.setdefault(pause.name, QueueStanding(pause.name)).pause = pause
    return sorted(found.values(), key=lambda each: (each.due_us or now_us, each.name))
