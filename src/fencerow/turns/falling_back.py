"""Gives jobs that have waited long enough for a label to anybody: in every worker, with no leader."""

from __future__ import annotations

import time

from fencerow.core.chore import Chore, Site
from fencerow.core.store.hints import in_lanes
from fencerow.db.due import OWN, Due
from fencerow.turns.affinity import fall_back, next_fall_back

LOCKED_S = (
    0.02  # until the next look where somebody had locked all whose wait is over; then less and less often
)


class FallBack(Chore):
    """One look after another. Used on the event loop only."""

    name = "labels"
    jitter = 0.0

    def __init__(self, site: Site) -> None:
        self._site = site
        self._poll_max_s = site.config.poll_max_s
        self._locked_s = 0.0  # the pause after a look that found only locked jobs
        self._at = 0.0  # monotonic: then it ends

    async def tick(self) -> float:
        """Queue jobs whose wait for a label is over; returns the seconds until the next look.

        What somebody else has locked is over still: it is asked for less and less often. Where the clock went back,
        none may be over by it and some by the time before.
        """
        over_us = await self._site.engine.arun(next_fall_back())
        if over_us is None:
            return self._poll_max_s
        due = self._site.due()
        if over_us > 0:
            queued = due != OWN and await self._fall_back(due)
            return 0.0 if queued else min(self._poll_max_s, over_us / 1e6)
        now_s = time.monotonic()
        if now_s < self._at:
            return self._at - now_s
        queued = await self._fall_back(due)
        self._locked_s = 0.0 if queued else min(self._poll_max_s, 2 * self._locked_s or LOCKED_S)
        self._at = now_s + self._locked_s
        return self._locked_s

    async def _fall_back(self, due: Due) -> bool:
        """Whether any job was queued for anybody."""
        queued = await self._site.engine.arun(fall_back(actor=f"worker {self._site.worker}", due=due))
        self._site.announce(in_lanes(queued))
        return bool(queued)
