"""The slots of a worker: long-lived tasks of the event loop, each of which runs one job after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from fencerow.worker.batches import BatchExecutor
from fencerow.worker.death import Death
from fencerow.worker.pool import Pool


class Slots:
    """Opens slots, and ends those that have become too many after the job they run. Used on the event loop only."""

    def __init__(self, executor: BatchExecutor, death: Death) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self._executor = executor
        self._death = death
        self._over = False

    def fill(self, pool: Pool) -> None:
        """Open the slots that the pool lacks; those that it has too many end by themselves."""
        while pool.open < pool.slots:
            pool.open += 1
            self.spawn(self._slot(pool), "fencerow-slot")

    def spawn(self, work: Coroutine[Any, Any, None], name: str | None = None) -> None:
        """Run something beside the loops; the worker dies of its error."""
        task = asyncio.create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self._closed)

    def end(self) -> None:
        """The worker is over: no slot takes another job, and how its task ends matters no more."""
        self._over = True

    async def _slot(self, pool: Pool) -> None:
        while not self._over:
            attempt = await pool.get()
            if attempt is None:
                return
            slot_lost = partial(self._replace, pool)
            if attempt.handler.batch_max is None:
                await self._executor.run(attempt, slot_lost)
                kept, jobs = not attempt.abandoned, 1
            else:
                attempts = pool.joined(attempt)
                kept, jobs = await self._executor.run_batch(attempts, slot_lost), len(attempts)
            if not kept:
                return  # another slot has taken this one's place
            pool.done(jobs)

    def _replace(self, pool: Pool) -> None:
        pool.done()
        pool.open -= 1
        self.fill(pool)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if self._over:
            return
        if task.cancelled():
            self._death.tell(RuntimeError("a slot was cancelled from outside"))
        elif task.exception() is not None:
            self._death.tell(task.exception())
