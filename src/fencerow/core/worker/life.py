"""The life of an attempt in this process, on one screen: claimed, dispatched, run, decided, acknowledged.

    1. claimed        `claimed`: what a claim brought (`claimer.py`) waits in its pool, or is released at once
    2. dispatched     `_slot`: a slot takes it, with those of the same call; `dispatch.py` says where it runs
    3. run            `executor.py`: may it start, decode its arguments, call its handler
    4. decided        from its value or error to what its job becomes; `report` hands that to the acker
    5. acknowledged   `acker.py`: written under its fence; what is confirmed leaves the roster

The slot is free after the fourth: it never waits for the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any

from fencerow.core.background.loop import Fatal
from fencerow.core.errors import TooManyHung
from fencerow.core.model.outcome import Released
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.dispatch import Dispatch
from fencerow.core.worker.lease import Failover, WorkerLease
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.roster import Roster
from fencerow.db.driven import noticed


class Life:
    """Opens slots, long-lived tasks each of which runs one job after the other, and ends those that are too many after
    the job they run. Used on the event loop only."""

    def __init__(
        self,
        roster: Roster,
        dispatch: Dispatch,
        acker: Acker,
        lease: WorkerLease,
        failover: Failover,
        fatal: Fatal,
        *,
        hung_max: int,
    ) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.paused = False  # an operator wants nothing to be started
        self.leaving = False  # nothing more is started
        self._over = False
        self._roster = roster
        self._dispatch = dispatch
        self._acker = acker
        self._lease = lease
        self._failover = failover
        self._fatal = fatal
        self._hung_max = hung_max

    def starts_nothing(self) -> bool:
        """Whether nothing more is started, for a while or for good."""
        return self.paused or self.leaving

    def claimed(self, pool: Pool, attempts: Iterable[Attempt]) -> None:
        """A claim brought these: each waits for a slot of the pool, or is released."""
        roster = self._roster
        for attempt in attempts:
            if twice := roster.is_twice(attempt):
                # The database went back behind our first claim. Two runs must not have one fence.
                self._failover.doubted(*attempt.key)
                self._lease.renew_now()
                if attempt.key in roster.held:
                    continue  # what runs goes on: it is the holder again
            roster.take(attempt)
            # The answer to a claim that was on its way, or a run that was given up and still writes.
            if self.leaving or twice:
                self.release(attempt)
            elif self.paused:
                self.release(attempt, "the worker was paused before it started")
            elif attempt.claimed.queue not in pool.queues:
                self.release(attempt, "the worker no longer serves its queue")
            else:
                pool.put(attempt)

    def release(self, attempt: Attempt, why: str = "the worker shut down before it started") -> None:
        """It has not started, and will not start here."""
        self._acker.put(attempt, Released(why), 0.0)

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
        at_work, slot_lost = self._roster.at_work, partial(self._replace, pool)
        while not self._over:
            attempt = pool.at_hand() or await pool.get()
            if attempt is None:
                return
            attempts = [attempt] if attempt.handler.batch_max is None else pool.joined(attempt)
            for each in attempts:
                at_work.add(each.key)
            kept = await noticed(self._dispatch.run(attempts, slot_lost), pool.stir)
            let_start = 0
            for each in attempts:
                at_work.discard(each.key)
                let_start += each.may_start
            if not kept:
                return  # another slot has taken this one's place
            pool.done(let_start)

    def _replace(self, pool: Pool) -> None:
        pool.done()
        pool.open -= 1
        self.fill(pool)
        count = self._dispatch.hung_count
        if count > self._hung_max:
            error = TooManyHung(
                f"{count} handlers of this worker ignored their end and still run",
                "a thread cannot be killed; each keeps its memory and its locks",
                "let a supervisor start the worker again; give such jobs process=True, or timeouts of their own inside",
            )
            self._fatal.tell(error, "the patience", sudden=False)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if self._over:
            return
        if task.cancelled():
            self._fatal.tell(RuntimeError("a slot was cancelled from outside"))
        elif task.exception() is not None:
            self._fatal.tell(task.exception())
