"""Jobs whose name no code knows fail in the end: so much is owed to those who submitted them.

Until then they are left alone, because in the middle of a deploy they are normal, and `why` says so. Each
worker looks at the queues that it serves.
"""

from __future__ import annotations

import logging

from fencerow.core.chore import Chore, Site
from fencerow.core.model.wakeup import encode_ended
from fencerow.core.store.attempts import MovedJob
from fencerow.db.text import amount
from fencerow.retention.disown import disown, lanes_since

log = logging.getLogger("fencerow.worker.disowner")

LOOK_EVERY_S = 300.0
LOOK_ROWS = 5_000


class Disowner(Chore):
    """One look after another."""

    name = "disowner"

    def __init__(self, site: Site) -> None:
        self._site = site
        self._engine = site.engine
        self._age_s = site.config.unknown_max_s

    async def tick(self) -> float:
        """One look; returns the pause until the next."""
        for queue in tuple(self._site.queues()):
            for priority, lane in await self._engine.arun(lanes_since(queue, age_s=self._age_s)):
                self._tell(queue, await self._disown(queue, priority, lane))
        return LOOK_EVERY_S

    async def _disown(self, queue: str, priority: int, lane: str) -> list[MovedJob]:
        found: list[MovedJob] = []
        while moved := await self._engine.arun(
            disown(
                queue,
                priority,
                lane,
                age_s=self._age_s,
                look=LOOK_ROWS,
                actor=f"worker {self._site.worker}",
            )
        ):
            found += moved
        return found

    def _tell(self, queue: str, moved: list[MovedJob]) -> None:
        if not moved:
            return
        log.error(
            "%s of queue %s failed: no worker knew the name for %g s",
            amount(len(moved), "job"),
            queue,
            self._age_s,
        )
        self._site.telemetry.counters.add("jobs_disowned", len(moved))
        if awaited := [job.id for job in moved if job.awaited]:
            self._engine.wake(encode_ended(awaited))
