"""Gives free turns to jobs that wait for them: in every worker, with no leader.

It looks when it hears that somebody came to a gate or left one, when a job at a gate becomes due, and every
`poll_max_s`, because a wake-up may be lost.
"""

from __future__ import annotations

from fencerow.core.db.engine import Engine
from fencerow.core.store import store
from fencerow.core.worker.wakeups import WakeUps

TAKEN_S = 0.02  # until the next look, where another worker had taken what was there


class Turns:
    """One look after another. Used on the event loop only."""

    def __init__(self, engine: Engine, wakeups: WakeUps, *, poll_max_s: float) -> None:
        self._engine = engine
        self._wakeups = wakeups
        self._poll_max_s = poll_max_s

    async def tick(self) -> float:
        """Hand over what is free; returns the seconds until the next look."""
        arrived, due_us = await self._engine.arun(store.turns_wanted())
        if not arrived and (due_us is None or due_us > 0):
            return self._poll_max_s if due_us is None else min(self._poll_max_s, due_us / 1e6)
        handed = await self._engine.arun(store.hand_over())
        self._wakeups.announce_queued(handed.queued)
        if handed.more:
            return 0.0
        return TAKEN_S if not handed.queued else min(TAKEN_S, self._poll_max_s)
