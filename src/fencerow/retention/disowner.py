"""Jobs whose name no code knows fail in the end: so much is owed to those who submitted them.

Until then they are left alone, because in the middle of a deploy they are normal, and `why` says so. Each
worker looks at the queues that it serves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from fencerow.core.db.engine import Engine
from fencerow.core.store import store
from fencerow.core.store.finish import Moved
from fencerow.core.telemetry import Telemetry
from fencerow.retention.disown import disown

log = logging.getLogger("fencerow.worker.disowner")

LOOK_EVERY_S = 300.0
LOOK_ROWS = 5_000


class Disowner:
    """One look after another."""

    def __init__(
        self,
        engine: Engine,
        telemetry: Telemetry,
        *,
        age_s: float,
        actor: str,
        queues: Callable[[], Iterable[str]],
        on_ended: Callable[[list[str]], None],
    ) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._age_s = age_s
        self._actor = actor
        self._queues = queues
        self._on_ended = on_ended

    async def tick(self) -> float:
        """One look; returns the pause until the next."""
        for queue in tuple(self._queues()):
            for priority in await self._old_lanes(queue):
                self._tell(queue, await self._disown(queue, priority))
        return LOOK_EVERY_S

    async def _old_lanes(self, queue: str) -> list[int]:
        """The lanes whose first job has been due for long enough; the suspects have none of their own."""
        lanes, now_us = await self._engine.arun(store.lanes(queue))
        since_us = now_us - round(self._age_s * 1e6)
        return sorted({lane.priority or 0 for lane in lanes if lane.first_us <= since_us})

    async def _disown(self, queue: str, priority: int) -> list[Moved]:
        found: list[Moved] = []
        while moved := await self._engine.arun(
            disown(queue, priority, age_s=self._age_s, look=LOOK_ROWS, actor=self._actor)
        ):
            found += moved
        return found

    def _tell(self, queue: str, moved: list[Moved]) -> None:
        if not moved:
            return
        log.error(
            "%d jobs of queue %s failed: for %g s no worker knew their names", len(moved), queue, self._age_s
        )
        self._telemetry.counters.add("jobs_disowned", len(moved))
        self._on_ended([job.id for job in moved if job.awaited])
