"""Looks for jobs that were written while the database's clock stood ahead, and moves them back: in every worker.

It goes through the live jobs in parts, so that no look costs more when more jobs wait. Where one part had such jobs,
the clock did stand ahead, and it goes on at once.
"""

from __future__ import annotations

import logging
from functools import partial

from fencerow.clocks.ahead import FIRST, AheadJob, AheadPart, clock_reached, find_ahead, move_back
from fencerow.core.chore import Chore, Site
from fencerow.core.model.wakeup import Arrived, encode
from fencerow.core.store.hints import in_lanes
from fencerow.db.portion import Portion
from fencerow.db.text import amount

log = logging.getLogger("fencerow.worker")

PART_ROWS = 1_000


class Ahead(Chore):
    """One part after another; from the beginning when the last was reached. Used on the event loop only."""

    name = "ahead"

    def __init__(self, site: Site) -> None:
        self._site = site
        self._engine = site.engine
        self._pause_s = site.config.sweep_s
        self._after = FIRST
        self._part = Portion("jobs from ahead of the clock", PART_ROWS)
        self.portion = self._part

    async def tick(self) -> float:
        """Look at the next part; returns the seconds until the next look."""
        now_us = self._site.now_us()
        if now_us is None:
            return self._pause_s  # it has not read the clock yet
        reached_us = max(now_us, self._site.due().until_us)
        part, moved = await self._part.fit(PART_ROWS, partial(self._look, reached_us))
        self._after = part.next
        return 0.0 if moved and part.next != FIRST else self._pause_s

    async def _look(self, reached_us: int, limit: int) -> tuple[AheadPart, int]:
        part = await self._engine.arun(find_ahead(self._after, reached_us=reached_us, limit=limit))
        return part, await self._moved(part.ahead, reached_us) if part.ahead else 0

    async def _moved(self, found: list[AheadJob], reached_us: int) -> int:
        """Another worker may know of a later time; what was written before that is due by what it carries on."""
        others_us = await self._engine.arun(clock_reached())
        moved = await self._engine.arun(
            move_back(found, reached_us=max(reached_us, others_us), actor=f"worker {self._site.worker}")
        )
        self._site.announce(in_lanes(moved))
        if any(job.waits for job in moved):
            self._engine.wake([encode(Arrived())])
        if moved:
            log.warning(
                "moved %s back that were written while the database's clock stood ahead; find out what sets it",
                amount(len(moved), "job"),
            )
        return len(moved)
