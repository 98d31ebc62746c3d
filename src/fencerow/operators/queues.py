"""Pausing and resuming queues; it survives restarts, because every claim looks."""

from __future__ import annotations

import msgspec

from fencerow.core.model.job import At
from fencerow.db.run import Row, Steps, as_int, execute, operation, text_or_none


class PausedQueue(msgspec.Struct, frozen=True):
    """A queue from which nothing is claimed: since when, by whom, why."""

    name: str
    paused_at_us: int
    paused_by: str | None
    reason: str | None

    paused_at = At("paused_at_us")


@operation(alone=True, repeatable=True)
def pause_queue(queue: str, *, actor: str | None, reason: str | None = None) -> Steps[bool]:
    """Stop claims from a queue; false when it was paused already (the first word is kept)."""
    return bool((yield from execute("pause_queue", queue=queue, actor=actor, reason=reason)))


@operation(alone=True, repeatable=True)
def resume_queue(queue: str) -> Steps[bool]:
    """Let claims go on; false when it was not paused."""
    return bool((yield from execute("resume_queue", queue=queue)))


@operation(alone=True, repeatable=True, writes="")
def paused_queues() -> Steps[list[PausedQueue]]:
    """The paused queues."""
    return [_paused_of(row) for row in (yield from execute("paused_queues"))]


@operation(alone=True, repeatable=True, writes="")
def paused_queue(queue: str) -> Steps[PausedQueue | None]:
    """The pause of one queue; None: it is open. However many others are paused."""
    rows = yield from execute("paused_queue", queue=queue)
    return _paused_of(rows[0]) if rows else None


def _paused_of(row: Row) -> PausedQueue:
    return PausedQueue(str(row[0]), as_int(row[1]), text_or_none(row[2]), text_or_none(row[3]))
