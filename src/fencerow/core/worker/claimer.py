"""The claimer: keeps the slots of one pool fed, with one claim in flight while jobs run.

It asks for as many jobs as there are free slots plus what the slots work off in about a second, so
that short jobs never wait for a round trip and long ones are left to other workers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from fencerow.core.chore import Site
from fencerow.core.errors import Busy
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import Claimed
from fencerow.core.model.worker_labels import parsed_labels
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.brought import BoundedClaim, brought
from fencerow.core.worker.claim_facts import ClaimFacts
from fencerow.core.worker.dispatch import Dispatch
from fencerow.core.worker.hinted import HintedClaims
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.life import Life
from fencerow.core.worker.marks import QueueView
from fencerow.core.worker.pool import PREFETCH_MAX, Pool
from fencerow.core.worker.roster import Roster
from fencerow.core.worker.suspect_claims import SuspectClaims
from fencerow.core.worker.taking import SlotTaker
from fencerow.db.clock import CarriedClock
from fencerow.db.portion import Portion
from fencerow.db.run import Operation
from fencerow.db.steady import steady

log = logging.getLogger("fencerow.worker")

T = TypeVar("T")

LOST_PAUSE_S = 0.2
UNTOLD_US = 1_000_000  # a wake-up of a job that is due for longer was lost, or was never sent
LOOKED_AT_MIN = 100  # shares with due jobs that one look finds, if there are so many
LOCK_WAIT_MS = 100  # for a row that claims pass over, once after each look from the beginning


class Claimer:
    """Claims for one pool of slots, its queues in turn. `margin_s`: by when an attempt should be over at the latest,
    beyond its time limit."""

    def __init__(
        self,
        pool: Pool,
        site: Site,
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
        self._poll_max_s = site.config.poll_max_s
        self._lease = lease
        self._clock = clock
        self._handlers = handlers
        self._names = list(handlers)  # a job nobody knows here waits for a worker that does
        self._roster = roster
        self._dispatch = dispatch
        self._life = life
        self._margin_s = margin_s
        self._labels = parsed_labels(site.config.labels)
        self._looks = 0  # each begins at the queue behind the one at which the look before began
        self._suspects = SuspectClaims(
            pool,
            lease,
            clock,
            handlers,
            roster.suspects,
            dispatch.stays_here,
            self._claim_within,
            self._accept,
            margin_s=margin_s,
        )
        self.taker = SlotTaker(pool, self._names, self._may_take, self._accept, margin_s=margin_s)
        self._claiming_since: float | None = None  # when the claim in flight was sent
        self._is_looking = False  # the loop is in the middle of a tick
        self.hinted = HintedClaims(site.engine, pool.look.woken)
        pool.look.claims_at_once = self._claims_at_once
        self._facts = ClaimFacts(site.telemetry, clock)
        self.portion = Portion(f"claims from {' '.join(pool.queues)}", PREFETCH_MAX)

    @property
    def claiming_since(self) -> float | None:
        """When the claim in flight was sent, by the loop or by a hint."""
        return self.hinted.since if self._claiming_since is None else self._claiming_since

    async def tick(self) -> float:
        """Claim once for each queue that may hold something; returns the pause until the next look."""
        await self.hinted.answered()
        self._is_looking = True
        try:
            return await self._look()
        finally:
            self._is_looking = False
            self._facts.untold_us = None  # what a chore claims beside it was no secret

    async def _look(self) -> float:
        for attempt in self.pool.take_stale():
            self._life.release(attempt, "waited too long for a slot")
        if self._life.starts_nothing() or self._dispatch.withheld_for is not None:
            return self._poll_max_s
        if not self._lease.holds():
            return LOST_PAUSE_S
        pauses = []
        wanted = self.pool.wanted()
        queues = deque(self.pool.queues)
        queues.rotate(-self._looks)
        for queue in queues:
            view = self.pool.look.views.get(queue)
            if view is None or self._life.starts_nothing():
                continue  # an order came while an answer was under way
            if wanted > 0:
                await self._serve(view, wanted)
                wanted = self.pool.wanted()
            pauses.append(view.pause_s(time.monotonic()))
        self._looks += 1
        pause_s = min(pauses, default=self._poll_max_s)
        if wanted <= 0 and (pause_s <= 0 or self.pool.look.any_suspect()):
            self.pool.await_room()
            return self._poll_max_s
        return pause_s

    async def _serve(self, view: QueueView, wanted: int) -> None:
        # Whoever was declared dead meanwhile, during any of these awaits, has no holder until it registers again.
        await self._claim_passed_over(view, locked_only=True)
        self._facts.untold_us = None
        if view.wants_sweep(time.monotonic()):
            await self._sweep(view)
            wanted = self.pool.wanted()
        due_at = view.suspects.due_at
        if due_at is not None and time.monotonic() >= due_at and self._may_claim():
            await self._suspects.claim(view)
            await asyncio.sleep(0)  # a free slot takes it; if it runs alone, nothing else is claimed
            wanted = self.pool.wanted()
        while wanted > 0 and (holder := self._lease.holder) is not None and self._may_claim():
            if not await self._look_at_shares(view, wanted):
                left = await self._claim_lanes(view, wanted, holder)
                if left is None:
                    break
                wanted = left
        await self._claim_passed_over(view)

    async def _sweep(self, view: QueueView) -> None:
        """Look at the lanes from the beginning."""
        is_untold = view.is_untold(time.monotonic())
        imprint = None if self._clock.is_behind else self._engine.imprint()
        if is_untold and view.seen.is_still(imprint):
            view.rest(time.monotonic())
            return
        began, sent = time.monotonic(), steady()
        lanes, now_us = await self._engine.arun(store.lanes(view.queue, self._labels))
        if now_us:
            self._clock.read(sent, now_us)
        view.swept(lanes, now_us, began, due_us=self._clock.due().until_us)
        view.seen.note(None if view.has_more or view.suspects.due_at is not None else imprint, began)
        self._facts.untold_us = now_us - UNTOLD_US if is_untold else None

    async def _look_at_shares(self, view: QueueView, wanted: int) -> bool:
        """Look for the next shares, if more of them must be known before so many jobs are claimed."""
        found = view.to_look_at(wanted)
        if found is None:
            return False
        mark, turns = found
        limit = max(wanted, LOOKED_AT_MIN)
        sent = view.look_begins(mark.priority)
        place = (view.queue, mark.priority, turns.after, turns.until)
        look = store.ring(
            *place, names=self._names, limit=limit, from_us=turns.from_us, due=self._clock.due()
        )
        view.looked(mark.priority, await self._engine.arun(look), sent)
        return True

    async def _claim_lanes(self, view: QueueView, wanted: int, holder: str) -> int | None:
        """One claim from the lanes whose turn it is. Returns how many more may be claimed; None: nothing is due."""
        lanes: list[Mark] = []

        def claim(limit: int) -> Operation[list[Claimed]]:
            lanes[:] = view.next(limit)
            return self._claim_from(view, lanes, holder, limit)

        if not view.has_more:
            return None
        began = time.monotonic()
        jobs, asked = await self._claim_within(view, wanted, claim)
        if not asked:
            return None  # a limit lets none through
        line_us = view.line_us()
        jobs = view.claimed(jobs, asked, began, lanes)
        self._accept(view.queue, jobs, holder, time.monotonic() - began, line_us)
        return min(wanted, asked) - len(jobs)

    def _claim_from(
        self, view: QueueView, lanes: Sequence[Mark], holder: str, limit: int
    ) -> Operation[list[Claimed]]:
        return store.claim(
            view.queue,
            lanes,
            holder=holder,
            names=self._names,
            limit=limit,
            margin_s=self._margin_s,
            due=self._clock.due(),
            bounded=view.limit.is_there,
        )

    def _claims_at_once(self, view: QueueView) -> bool:
        """A hint came: claim in this very turn. False: something is to be done first, or nothing may be claimed."""
        wanted, holder = min(self.pool.wanted(), self.portion.rows), self._lease.holder
        if self._is_looking or not self.hinted.is_free or wanted <= 0 or holder is None:
            return False
        if not view.is_plain() or not self._may_claim():
            return False
        self._facts.untold_us = None
        lanes, began = view.next(wanted), time.monotonic()

        def brought(jobs: list[Claimed]) -> None:
            self._accept(view.queue, jobs, holder, time.monotonic() - began)

        def noted(jobs: list[Claimed]) -> float:
            view.heads.took(jobs)
            view.claimed(jobs, wanted, began, lanes)
            return view.pause_s(time.monotonic())

        claim = self._claim_from(view, lanes, holder, wanted)
        return self.hinted.begin(claim, brought, noted, self._roster.started.doubt)

    async def _claim_passed_over(self, view: QueueView, *, locked_only: bool = False) -> None:
        """Wait for rows that somebody had locked: a job whose row submits lock again and again must not starve.

        Where others took all the room, it is done first when there is some again, and then for what is still locked:
        else what nobody has locked would go before all that is more urgent.
        """
        for lane in () if self._engine.traits.one_writer else view.heads.passed_over():
            holder = self._lease.holder
            if holder is None or self.pool.wanted() <= 0 or not self._may_claim():
                return
            view.heads.took_up(lane)
            began = time.monotonic()
            try:
                jobs, _ = await self._claim_within(
                    view, 1, partial(self._waiting, view, lane, holder, locked_only)
                )
            except Busy:
                view.stays_locked()
            else:
                self._accept(view.queue, jobs, holder, time.monotonic() - began)

    def _waiting(
        self, view: QueueView, lane: tuple[int, str], holder: str, locked_only: bool, _limit: int
    ) -> Operation[list[Claimed]]:
        return store.claim_passed_over(
            view.queue,
            *lane,
            holder=holder,
            names=self._names,
            margin_s=self._margin_s,
            wait_ms=LOCK_WAIT_MS,
            locked_only=locked_only or view.takes_turns(lane),
            due=self._clock.due(),
            bounded=view.limit.is_there,
        )

    async def _claim_within(
        self, view: QueueView, wanted: int, claim: Callable[[int], Operation[list[Claimed]]]
    ) -> tuple[list[Claimed], int]:
        """What was claimed, and of how many that might have been: fewer than are wanted where a limit is met, or where
        the database could not take so many at once."""
        return await self.portion.fit(wanted, partial(self._claim_bounded, view, claim))

    async def _claim_bounded(
        self, view: QueueView, claim: Callable[[int], Operation[list[Claimed]]], wanted: int
    ) -> tuple[list[Claimed], int]:
        bound_claim = brought().bound_claim if view.limit.is_there else None
        if bound_claim is None:
            jobs = await self._claim(claim(wanted))
            view.heads.took(jobs)
            return jobs, wanted
        if view.limit.is_closed(time.monotonic()):
            return [], 0
        free = min(wanted, self.pool.free())  # what waits for a slot here would keep others from the limit
        found = await self._claim(bound_claim(view.queue, free, claim)) if free else BoundedClaim([], 0)
        view.heads.took(found.jobs)
        for each in found.news:
            log.warning("%s", each)
        if found.room < wanted:
            view.limit.met(found.again_s)
        return found.jobs, found.room

    def _may_claim(self) -> bool:
        """Whether a job that is claimed now could start here, else it would only be released, again and again; and
        whether nothing claims beside it, for what was claimed first has to come first."""
        is_kept = self.pool.reserved or self._life.starts_nothing() or self._dispatch.withheld_for is not None
        return not is_kept and self._lease.holds()

    def _may_take(self) -> bool:
        """Whether a chore may claim for these slots: no claim waits for an answer, and its own claim, which knows no
        other clock than the database's, would miss nothing that is due."""
        return self.claiming_since is None and not self._clock.is_behind and self._may_claim()

    async def _claim(self, claim: Operation[T]) -> T:
        self._claiming_since = time.monotonic()
        try:
            return await self._engine.arun(claim)
        except BaseException as error:
            self._roster.started.doubt(error)
            raise
        finally:
            self._claiming_since = None

    def _accept(
        self, queue: str, jobs: Sequence[Claimed], holder: str, duration_s: float, line_us: int | None = None
    ) -> None:
        """`line_us`: they come in turns, from a lane whose first job was due then."""
        if jobs:
            handlers = self._handlers
            attempts = [Attempt(each, holder, handlers[each.name]) for each in jobs]
            if line_us is not None:
                for attempt in attempts:
                    attempt.line_us = line_us
            self._facts.tell(queue, attempts, duration_s)
            self._life.claimed(self.pool, attempts)
