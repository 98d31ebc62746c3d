"""Claims of suspects: of jobs whose last worker died while they may have run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from fencerow.core.model.handler import Handler
from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.marks import QueueView
from fencerow.core.worker.pool import Pool
from fencerow.core.worker.roster import Suspects
from fencerow.db.clock import CarriedClock
from fencerow.db.run import Operation

ClaimsOf = Callable[[int], Operation[list[Claimed]]]


class SuspectClaims:
    """Those of one claimer. `within` claims as many as fit at once, see `Claimer`; `accept` hands to the slots what was
    claimed. Used on the event loop only."""

    def __init__(
        self,
        pool: Pool,
        lease: WorkerLease,
        clock: CarriedClock,
        handlers: Mapping[str, Handler],
        suspects: Suspects,
        stays_here: Callable[[Handler], bool],
        within: Callable[[QueueView, int, ClaimsOf], Awaitable[tuple[list[Claimed], int]]],
        accept: Callable[[str, Sequence[Claimed], str, float], None],
        *,
        margin_s: float,
    ) -> None:
        self._pool = pool
        self._lease = lease
        self._clock = clock
        self._handlers = handlers
        self._suspects = suspects
        self._stays_here = stays_here
        self._within = within
        self._accept = accept
        self._margin_s = margin_s
        # In turns: where there is room for one, neither kind of suspects may keep the other from it.
        self._here_first = False

    async def claim(self, view: QueueView) -> None:
        """As many as may run at once where child processes run them; one at a time of those that run in here."""
        suspects = self._suspects
        apart, here = suspects.sorted_out(self._handlers, self._stays_here)
        held = suspects.held
        room = min(suspects.room(), self._pool.wanted())
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
            view.suspects.due_at = None

    async def _suspects_of(self, view: QueueView, names: list[str], held: int, more: int) -> int:
        """Claim until this worker, which runs `held`, runs so many `more`."""
        holder = self._lease.holder
        if holder is None:
            return 0
        began = time.monotonic()

        def claim(limit: int) -> Operation[list[Claimed]]:
            return store.claim_suspect(
                view.queue,
                view.suspects.marks(),
                holder=holder,
                names=names,
                margin_s=self._margin_s,
                at_most=held + more,
                limit=limit,
                due=self._clock.due(),
                bounded=view.limit.is_there,
            )

        jobs, _ = await self._within(view, more, claim)
        self._accept(view.queue, jobs, holder, time.monotonic() - began)
        return len(jobs)
