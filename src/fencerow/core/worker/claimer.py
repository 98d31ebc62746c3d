"""The claimer: keeps the slots of one pool fed, with one claim in flight while jobs run.

It asks for as many jobs as there are free slots plus what the slots work off in about a second, so
that short jobs never wait for a round trip and long ones are left to other workers.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from fencerow.core.background.loop import Loop, Loops
from fencerow.core.chore import Site
from fencerow.core.db.clock import CarriedClock
from fencerow.core.db.run import Operation
from fencerow.core.db.steady import steady
from fencerow.core.model.due import OWN
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.worker.ageing import Ageing
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.brought import BoundedClaim, brought
from fencerow.core.worker.dispatch import Dispatch
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.life import Life
from fencerow.core.worker.marks import QueueView
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.roster import Roster

T = TypeVar("T")

LOST_PAUSE_S = 0.2
ANSWER_S = 5.0  # that the last claims of a worker may take


class Claimer:
    """Claims for one pool of slots, its queues in turn. `margin_s`: by when an attempt should be over at the latest,
    beyond its time limit."""

    def __init__(
        self,
        site: Site,
        pool: Pool,
        lease: WorkerLease,
        clock: CarriedClock,
        handlers: Mapping[str, Handler],
        roster: Roster,
        dispatch: Dispatch,
        life: Life,
        *,
        margin_s: float,
    ) -> None:
        self.pool = pool
        self._engine = site.engine
        self._telemetry = site.telemetry
        self._poll_max_s = site.config.poll_max_s
        self._lease = lease
        self._clock = clock
        self._handlers = handlers
        self._names = list(handlers)  # a job nobody knows here waits for a worker that does
        self._roster = roster
        self._dispatch = dispatch
        self._life = life
        self._margin_s = margin_s
        self._turn = deque(pool.queues)
        # In turns: where there is room for one, neither kind of suspects may keep the other from it.
        self._here_first = False
        self.paused = False
        self.claiming_since: float | None = None  # when the claim in flight was sent

    def follow(self) -> None:
        """Serve the queues that the pool serves now."""
        self._turn = deque(self.pool.queues)

    async def tick(self) -> float:
        """Claim once for each queue that may hold something; returns the pause until the next look."""
        for attempt in self.pool.take_stale():
            self._life.release(attempt, "waited too long for a slot")
        if self.paused or self._dispatch.is_withheld:
            return self._poll_max_s
        if not self._lease.holds():
            return LOST_PAUSE_S
        pauses = []
        wanted = self.pool.wanted()
        for queue in tuple(self._turn):
            view = self.pool.look.views.get(queue)
            if view is None or self.paused:
                continue  # an order came while an answer was under way
            if wanted > 0:
                await self._serve(view, wanted)
                wanted = self.pool.wanted()
            pauses.append(view.pause_s(time.monotonic()))
        self._turn.rotate(-1)
        pause_s = min(pauses, default=self._poll_max_s)
        if wanted <= 0 and (pause_s <= 0 or self.pool.look.any_suspect()):
            self.pool.await_room()
            return self._poll_max_s
        return pause_s

    async def _serve(self, view: QueueView, wanted: int) -> None:
        # Whoever was declared dead meanwhile, during any of these awaits, has no holder until it registers anew.
        if view.wants_sweep(time.monotonic()):
            began, sent = time.monotonic(), steady()
            lanes, now_us = await self._engine.arun(store.lanes(view.queue))
            if now_us:
                self._clock.read(sent, now_us)
            view.swept(lanes, now_us, began, due_us=self._clock.due().until_us)
            wanted = self.pool.wanted()
        due_at = view.suspect_due_at
        if due_at is not None and time.monotonic() >= due_at and self._may_claim():
            await self._claim_suspects(view)
            await asyncio.sleep(0)  # a free slot takes it; if it runs alone, nothing else is claimed
            wanted = self.pool.wanted()
        marks = view.marks()
        holder = self._lease.holder
        if marks and wanted > 0 and holder is not None and self._may_claim():
            began = time.monotonic()

            def claim(limit: int) -> Operation[list[Claimed]]:
                return store.claim(
                    view.queue,
                    marks,
                    holder=holder,
                    names=self._names,
                    limit=limit,
                    margin_s=self._margin_s,
                    due=self._clock.due() if self._clock.is_behind else OWN,
                    bounded=view.is_limited,
                )

            jobs, asked = await self._claim_within(view, wanted, claim)
            if asked:
                view.claimed(jobs, asked, began)
            self._accept(view.queue, jobs, holder, time.monotonic() - began)

    async def _claim_within(
        self, view: QueueView, wanted: int, claim: Callable[[int], Operation[list[Claimed]]]
    ) -> tuple[list[Claimed], int]:
        """What was claimed, and of how many that might have been: fewer than are wanted where a limit is met."""
        bound_claim = brought().bound_claim
        if not view.is_limited or bound_claim is None:
            return await self._claim(claim(wanted)), wanted
        if view.is_closed(time.monotonic()):
            return [], 0
        free = min(wanted, self.pool.free())  # what waits for a slot here would keep others from the limit
        found = await self._claim(bound_claim(view.queue, free, claim)) if free else BoundedClaim([], 0)
        if found.room < wanted:
            view.limit_met(found.again_s)
        return found.jobs, found.room

    def _may_claim(self) -> bool:
        """Whether a job that is claimed now could start here: else it would only be released, again and again."""
        return not self.paused and not self._dispatch.is_withheld and self._lease.holds()

    async def _claim_suspects(self, view: QueueView) -> None:
        """As many as may run at once where child processes run them; one at a time of those that run in here."""
        suspects = self._roster.suspects
        apart, here = suspects.sorted_out(self._handlers, self._dispatch.stays_here)
        held = suspects.held
        room = min(suspects.room(), self.pool.wanted())
        kinds = [(apart, room), (here, min(room, 1))]
        if self._here_first:
            kinds.reverse()
        found = 0
        for names, at_most in kinds:
            if names and found < room:
                found += await self._suspects_of(view, names, held, min(found + at_most, room))
        if found:
            self._here_first = not self._here_first
        # One suspect seldom comes alone: the next is asked for as soon as one has ended, without a sweep.
        elif not suspects.held:
            view.suspect_due_at = None

    async def _suspects_of(self, view: QueueView, names: list[str], held: int, more: int) -> int:
        """Claim until this worker, which runs `held`, runs so many `more`."""
        holder = self._lease.holder
        if holder is None:
            return 0
        began = time.monotonic()

        def claim(limit: int) -> Operation[list[Claimed]]:
            return store.claim_suspect(
                view.queue,
                holder=holder,
                names=names,
                margin_s=self._margin_s,
                at_most=held + limit,
                due=self._clock.due(),
                bounded=view.is_limited,
            )

        jobs, _ = await self._claim_within(view, more, claim)
        self._accept(view.queue, jobs, holder, time.monotonic() - began)
        return len(jobs)

    async def _claim(self, claim: Operation[T]) -> T:
        self.claiming_since = time.monotonic()
        try:
            return await self._engine.arun(claim)
        except BaseException:
            self._roster.started.doubt()  # it may have claimed all the same
            raise
        finally:
            self.claiming_since = None

    def _accept(self, queue: str, jobs: Sequence[Claimed], holder: str, duration_s: float) -> None:
        if jobs:
            handlers = self._handlers
            self._life.claimed(self.pool, [Attempt(each, holder, handlers[each.name]) for each in jobs])
            if self._telemetry.is_heard:
                self._telemetry.emit(Fact.CLAIMED, queue=queue, count=len(jobs), duration_s=duration_s)


class Claims:
    """The claimers of a worker, each with its pool and its loop. Used on the event loop only."""

    def __init__(
        self,
        site: Site,
        lease: WorkerLease,
        clock: CarriedClock,
        handlers: Mapping[str, Handler],
        roster: Roster,
        dispatch: Dispatch,
        life: Life,
        loops: Loops,
        *,
        margin_s: float,
    ) -> None:
        self._site = site
        self._lease = lease
        self._clock = clock
        self._handlers = handlers
        self._roster = roster
        self._dispatch = dispatch
        self._life = life
        self._loops = loops
        self._margin_s = margin_s
        self.claimers: dict[Claimer, Loop] = {}
        self._dismissed: list[Loop] = []  # they serve nothing any more; some may still wait for an answer

    def open(self, queues: Sequence[str], slots: int) -> Pool:
        """Serve these queues, which nobody serves here, with slots of their own."""
        config = self._site.config
        ageing = Ageing(config.priority_ageing_s)
        pool = Pool(queues, slots, config.prefetch_s, config.poll_max_s, self._roster.started, ageing)
        self._roster.pools.append(pool)
        claimer = Claimer(
            self._site,
            pool,
            self._lease,
            self._clock,
            self._handlers,
            self._roster,
            self._dispatch,
            self._life,
            margin_s=self._margin_s,
        )
        claimer.paused = self._life.paused
        name = f"claimer {' '.join(queues)}"
        telemetry, woken = self._site.telemetry, pool.look.woken
        loop = Loop(name, claimer.tick, telemetry, endures_s=config.lease_s, woken=woken)
        self.claimers[claimer] = loop
        self._loops.add(loop)
        return pool

    def changed(self, pool: Pool) -> None:
        """The pool serves other queues; without any its loop ends after the answer that is under way."""
        for claimer, loop in tuple(self.claimers.items()):
            if claimer.pool is not pool:
                continue
            claimer.follow()
            if pool.queues:
                loop.wake()
            else:
                del self.claimers[claimer]
                self._loops.dismiss(loop)
                self._dismissed = [each for each in (*self._dismissed, loop) if each in self._loops.tasks]

    def look_again(self) -> None:
        """Hints may have been lost: sweep every queue at once."""
        for claimer in self.claimers:
            claimer.pool.look.look_again()

    def are_idle(self) -> bool:
        """Whether a look from the beginning found nothing due in any queue."""
        return all(claimer.pool.look.is_idle() for claimer in self.claimers)

    def any_sent_by(self, moment: float) -> bool:
        """Whether a claim sent by then (monotonic seconds) still waits for its answer."""
        sent = [claimer.claiming_since for claimer in self.claimers]
        return any(each is not None and each <= moment for each in sent)

    def pause(self) -> None:
        """Claim nothing more."""
        for claimer in self.claimers:
            claimer.paused = True

    def resume(self) -> None:
        """Claim again, from the beginning of every queue."""
        for claimer in self.claimers:
            claimer.paused = False
        self.look_again()

    def stop(self) -> None:
        """End the loops, each after the answer that is under way."""
        for loop in self.claimers.values():
            loop.stop()

    async def answered(self) -> None:
        """Wait until the loops, told to stop, have the answers that are under way, but not for ever."""
        tasks = self._loops.tasks_of([*self.claimers.values(), *self._dismissed])
        if tasks:
            await asyncio.wait(tasks, timeout=ANSWER_S)
