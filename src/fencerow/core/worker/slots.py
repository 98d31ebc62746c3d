"""The slots of a worker: long-lived tasks of the event loop, each of which runs one job after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from fencerow.core.worker.building import too_many_hung
from fencerow.core.worker.death import Death
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.stepping import noticed
from fencerow.core.worker.workplace import Workplace


class Slots:
    """Opens slots, and ends those that have become too many after the job they run. Used on the event loop only."""

    def __init__(self, workplace: Workplace, death: Death, *, hung_max: int) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self._workplace = workplace
        self._hung_max = hung_max
        self._death = death
        self._over = False
        self._at_work: set[tuple[str, int]] = set()  # job and attempt

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

    def works_on(self, key: tuple[str, int]) -> bool:
        """Whether a call for this job and attempt is under way, also one that was given up and still goes on."""
        return key in self._at_work

    def end(self) -> None:
        """The worker is over: no slot takes another job, and how its task ends matters no more."""
        self._over = True

    async def _slot(self, pool: Pool) -> None:
        slot_lost = partial(self._replace, pool)
        while not self._over:
            attempt = await pool.get()
            if attempt is None:
                return
            attempts = [attempt] if attempt.handler.batch_max is None else pool.joined(attempt)
            for each in attempts:
                self._at_work.add(each.key)
            kept = await noticed(self._workplace.run(attempts, slot_lost), pool.stir)
            for each in attempts:
                self._at_work.discard(each.key)
            if not kept:
                return  # another slot has taken this one's place
            pool.done(len(attempts))

    def _replace(self, pool: Pool) -> None:
        pool.done()
        pool.open -= 1
        self.fill(pool)
        if self._workplace.hung_count > self._hung_max:
            self._death.tell(too_many_hung(self._workplace.hung_count), "the patience", sudden=False)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if self._over:
            return
        if task.cancelled():
            self._death.tell(RuntimeError("a slot was cancelled from outside"))
        elif task.exception() is not None:
            self._death.tell(task.exception())
