"""The claimer: keeps the slots of one pool fed, with one claim in flight while jobs run.

It asks for as many jobs as there are free slots plus what the slots work off in about a second, so
that short jobs never wait for a round trip and long ones are left to other workers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Operation
from fencerow.core.db.steady import steady
from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.core.telemetry import Event, Telemetry
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.carried import Carried
from fencerow.core.worker.handler import Handler
from fencerow.core.worker.lease import Lease
from fencerow.core.worker.marks import QueueView
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.suspects import Suspects

LOST_PAUSE_S = 0.2


class Claimer:
    """Claims for one pool of slots, its queues in turn."""

    def __init__(
        self,
        engine: Engine,
        pool: Pool,
        lease: Lease,
        handlers: Mapping[str, Handler],
        telemetry: Telemetry,
        carried: Carried,
        *,
        poll_max_s: float,
        margin_s: float,
        suspects: Suspects,
        withheld: Callable[[], bool],
        take: Callable[[Attempt], None],
        doubt: Callable[[], None],
        give_back: Callable[[Attempt], None],
    ) -> None:
        self.pool = pool
        self.views: dict[str, QueueView] = {}
        self._engine = engine
        self._lease = lease
        self._handlers = handlers
        self._telemetry = telemetry
        self._carried = carried
        self._poll_max_s = poll_max_s
        self._margin_s = margin_s
        self._suspects = suspects
        self._withheld = withheld
        self._take = take
        self._doubt = doubt
        self._give_back = give_back
        self._turn: deque[str] = deque()
        self._here_first = (
            False  # in turns: where there is room for one, neither kind may keep the other from it
        )
        self.paused = False
        self.claiming_since: float | None = None  # when the claim in flight was sent
        self.follow()

    def follow(self) -> None:
        """Serve the queues that the pool serves now; what is known of those that stay is kept."""
        kept = self.views
        self.views = {
            queue: kept.get(queue) or QueueView(queue, self._poll_max_s) for queue in self.pool.queues
        }
        self._turn = deque(self.pool.queues)

    async def tick(self) -> float:
        """Claim once for each queue that may hold something; returns the pause until the next look."""
        for attempt in self.pool.take_stale():
            self._give_back(attempt)
        if self.paused or self._withheld():
            return self._poll_max_s
        if not self._lease.holds():
            return LOST_PAUSE_S
        pauses = []
        for queue in tuple(self._turn):
            view = self.views.get(queue)
            if view is None or self.paused:
                continue  # an order came while an answer was under way
            if self.pool.wanted() > 0:
                await self._serve(view)
            pauses.append(view.pause_s(time.monotonic()))
        self._turn.rotate(-1)
        if self.pool.wanted() <= 0:
            return self._poll_max_s  # the pool wakes us when it has room
        return min(pauses, default=self._poll_max_s)

    async def _serve(self, view: QueueView) -> None:
        # Whoever was declared dead meanwhile, during any of these awaits, has no holder until it registers anew.
        if view.wants_sweep(time.monotonic()):
            began, sent = time.monotonic(), steady()
            lanes, now_us = await self._engine.arun(store.lanes(view.queue))
            if now_us:
                self._carried.read(sent, now_us)
            view.swept(lanes, now_us, began, due_us=self._carried.due().until_us)
        if view.suspect_due_at is not None and time.monotonic() >= view.suspect_due_at:
            await self._claim_suspects(view)
            if self._withheld():
                return
        marks = view.marks()
        wanted = self.pool.wanted()
        holder = self._lease.holder
        if marks and wanted > 0 and holder is not None:
            began = time.monotonic()
            jobs = await self._claim(
                store.claim(
                    view.queue,
                    marks,
                    holder=holder,
                    names=self._names(),
                    limit=wanted,
                    margin_s=self._margin_s,
                    due=self._carried.due(),
                )
            )
            took_s = time.monotonic() - began
            view.claimed(jobs, wanted, took_s)
            self._accept(view.queue, jobs, holder, took_s)

    async def _claim_suspects(self, view: QueueView) -> None:
        """As many as may run at once where child processes run them; one at a time of those that run in here."""
        apart, here = self._suspects.sorted_out(self._handlers)
        held = self._suspects.held
        room = min(self._suspects.room(), self.pool.wanted())
        kinds = [(apart, room), (here, min(room, 1))]
        if self._here_first:
            kinds.reverse()
        found = 0
        for names, at_most in kinds:
            if names and found < room:
                found += await self._suspects_of(view, names, held + min(found + at_most, room))
        if found:
            self._here_first = not self._here_first
        # One suspect seldom comes alone: the next is asked for as soon as one has ended, without a sweep.
        elif not self._suspects.held:
            view.suspect_due_at = None

    async def _suspects_of(self, view: QueueView, names: list[str], at_most: int) -> int:
        holder = self._lease.holder
        if holder is None:
            return 0
        began = time.monotonic()
        jobs = await self._claim(
            store.claim_suspect(
                view.queue,
                holder=holder,
                names=names,
                margin_s=self._margin_s,
                at_most=at_most,
                due=self._carried.due(),
            )
        )
        self._accept(view.queue, jobs, holder, time.monotonic() - began)
        return len(jobs)

    async def _claim(self, claim: Operation[list[Claimed]]) -> list[Claimed]:
        self.claiming_since = time.monotonic()
        try:
            return await self._engine.arun(claim)
        except BaseException:
            self._doubt()  # it may have claimed all the same
            raise
        finally:
            self.claiming_since = None

    def _accept(self, queue: str, jobs: Sequence[Claimed], holder: str, duration_s: float) -> None:
        handlers, take = self._handlers, self._take
        for claimed in jobs:
            take(Attempt(claimed, holder, handlers[claimed.name]))
        if jobs:
            self._telemetry.emit(Event.CLAIMED, queue=queue, count=len(jobs), duration_s=duration_s)

    def _names(self) -> list[str]:
        """Only what is registered here: a job nobody knows waits for a worker that does."""
        return list(self._handlers)
