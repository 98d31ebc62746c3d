"""The claimers of a worker: opened with the pools that they serve, changed and stopped together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from fencerow.core.background.loop import Loop, Loops
from fencerow.core.chore import Site
from fencerow.core.model.lane import Ageing
from fencerow.core.worker.claimer import Claimer
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.roster import Roster
from fencerow.core.worker.taking import SlotTaking

PATIENT_S = 0.1  # that a look waits for slots, at most
BRIEF_S = 0.002  # between two looks whether they want something
ANSWER_S = 5.0  # that the last claims of a worker may take


class Claims:
    """The claimers of a worker, each with its pool and its loop. Used on the event loop only."""

    def __init__(
        self,
        site: Site,
        lease: WorkerLease,
        roster: Roster,
        loops: Loops,
        claimer_of: Callable[[Pool], Claimer],
    ) -> None:
        self._site = site
        self._lease = lease
        self._roster = roster
        self._loops = loops
        self._claimer_of = claimer_of
        self.claimers: dict[Claimer, Loop] = {}
        self._taking: SlotTaking | None = None  # the last; it may be over
        # They serve nothing any more; some may still wait for an answer.
        self._dismissed: list[tuple[Claimer, Loop]] = []

    def open(self, queues: Sequence[str], slots: int) -> Pool:
        """Serve these queues, which nobody serves here, with slots of their own."""
        config = self._site.config
        ageing = Ageing(config.priority_ageing_s)
        pool = Pool(queues, slots, config.prefetch_s, config.poll_max_s, self._roster.started, ageing)
        self._roster.pools.append(pool)
        claimer = self._claimer_of(pool)
        name = f"claimer {' '.join(queues)}"
        telemetry, woken = self._site.telemetry, pool.look.woken
        loop = Loop(
            name,
            claimer.tick,
            telemetry,
            endures_s=config.lease_s,
            woken=woken,
            portion=claimer.portion,
            stands_apart=True,  # the worker waits for its last answer
        )
        self.claimers[claimer] = loop
        self._loops.add(loop)
        return pool

    def changed(self, pool: Pool) -> None:
        """The pool serves other queues; without any its loop ends after the answer that is under way."""
        for claimer, loop in tuple(self.claimers.items()):
            if claimer.pool is not pool:
                continue
            if pool.queues:
                loop.wake()
            else:
                del self.claimers[claimer]
                self._loops.dismiss(loop)
                dismissed = (*self._dismissed, (claimer, loop))
                self._dismissed = [each for each in dismissed if each[1] in self._loops.tasks]

    def are_idle(self) -> bool:
        """Whether a look from the beginning found nothing due in any queue, and no chore may have claimed something."""
        return self._under_way() is None and all(claimer.pool.look.is_idle() for claimer in self.claimers)

    async def taking(self) -> SlotTaking | None:
        """What a chore may claim in its next transaction. None: slots want nothing, or another one may be claiming.

        Where no other worker lives it waits until slots want something, but not for long: a turn that was given sooner
        would be of use to nobody, and its job be queued by a write of its own.
        """
        lived_alone = self._taking is None or self._taking.lives_alone
        over = time.monotonic() + PATIENT_S
        # No event: an end, an answer, an order and the lease make room, and each of them, each time, would pay for it.
        while not self._any_wanted() and lived_alone and time.monotonic() < over:  # noqa: ASYNC110
            await asyncio.sleep(BRIEF_S)
        if self._under_way() is not None or not self._any_wanted():
            return None
        takers = [claimer.taker for claimer in self.claimers]
        engine, doubt = self._site.engine, self._roster.started.doubt
        self._taking = SlotTaking(engine, self._lease, takers, doubt, lived_alone=lived_alone)
        return self._taking

    def _any_wanted(self) -> bool:
        return any(claimer.taker.room() for claimer in self.claimers)

    def _under_way(self) -> SlotTaking | None:
        """The one that waits for its answer."""
        return None if self._taking is None or self._taking.answered.done() else self._taking

    def any_sent_by(self, moment: float) -> bool:
        """Whether a claim sent by then (monotonic seconds) still waits for its answer."""
        sent = [claimer.claiming_since for claimer in self.claimers]
        if (taking := self._under_way()) is not None:
            sent.append(taking.since)
        return any(each is not None and each <= moment for each in sent)

    def stop(self) -> None:
        """End the loops, each after the answer that is under way."""
        for loop in self.claimers.values():
            loop.stop()

    async def answered(self) -> None:
        """Wait until the loops, told to stop, have the answers that are under way, but not for ever."""
        waited_for: list[asyncio.Future[None]] = []
        for claimer, loop in (*self.claimers.items(), *self._dismissed):
            waited_for += self._loops.tasks_of([loop])
            if (hinted := claimer.hinted.under_way()) is not None:
                waited_for.append(hinted)
        if (taking := self._under_way()) is not None:
            waited_for.append(taking.answered)
        if waited_for:
            await asyncio.wait(waited_for, timeout=ANSWER_S)
