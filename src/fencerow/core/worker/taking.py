"""Jobs that a chore lets go are claimed in its own transaction, as far as slots of this worker want them.

They wait at a place, in no lane. Queued first, each would be written once more, and its claim would wait for that. A
worker takes them so where nothing else is known to be due in their queue: whoever is more urgent, or came before them,
stands in a lane by then, and goes first. What it does not take is queued, for everybody.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from fencerow.core.model.job import Claimed
from fencerow.core.store.claims import claim_given
from fencerow.core.worker.lease import WorkerLease
from fencerow.core.worker.look import QueueLook
from fencerow.core.worker.pool import PREFETCH_MAX, Pool
from fencerow.db.engine import Engine
from fencerow.db.run import Operation, Steps

T = TypeVar("T")


class SlotTaker:
    """Takes jobs for one pool. Used on the event loop only.

    `may_take`: whether a claim could take now what the database's own clock says is due, and none waits for an answer,
    which may fill the slots. `accept` hands what was claimed to them.
    """

    def __init__(
        self,
        pool: Pool,
        names: Sequence[str],
        may_take: Callable[[], bool],
        accept: Callable[[str, Sequence[Claimed], str, float], None],
        *,
        margin_s: float,
    ) -> None:
        self.accept = accept
        self._pool = pool
        self._names = names
        self._may_take = may_take
        self._margin_s = margin_s

    @property
    def queues(self) -> Sequence[str]:
        """Those that it serves now."""
        return self._pool.queues

    def begun(self) -> None:
        """An operation is on its way for these slots, until `over`: they let the event loop read its answers."""
        self._pool.is_taken_for = True

    def room(self) -> int:
        """How many jobs slots want beside those that wait for one here."""
        return self._pool.room() if self._may_take() else 0

    def most(self) -> int:
        """How many more slots would have at once; `PREFETCH_MAX` where something may be due in a lane before them."""
        dry = all(_is_dry(self._pool.look, queue) for queue in self.queues)
        return self.room() if dry else PREFETCH_MAX

    def wanted(self, queue: str, ahead: int) -> int:
        """How many jobs of this queue slots want now that stand in no lane. So many may be claimed `ahead`."""
        return min(self.room(), max(self._pool.free(), ahead)) if _is_dry(self._pool.look, queue) else 0

    def claim(self, queue: str, ids: Sequence[str], holder: str) -> Steps[list[Claimed]]:
        """Claim these. Slots are kept for them until `over`, and nothing else is claimed for these slots."""
        self._pool.reserved = len(ids)
        return (yield from claim_given(queue, ids, holder=holder, names=self._names, margin_s=self._margin_s))

    def over(self) -> None:
        """The operation has its answer, and no slot is kept any more."""
        self._pool.is_taken_for = False
        if self._pool.reserved:
            self._pool.reserved = 0
            self._pool.say_room()  # the claimer waits for it


class SlotTaking:
    """What one operation may claim beside what it does. Used on the event loop only, and once."""

    def __init__(
        self,
        engine: Engine,
        lease: WorkerLease,
        takers: Sequence[SlotTaker],
        not_known: Callable[[BaseException], None],
        *,
        lived_alone: bool,
    ) -> None:
        """`lived_alone`: what the one before found, see `lives_alone`."""
        self.lives_alone = False  # it might claim, and no other worker lived
        self._lived_alone = lived_alone
        self.since = time.monotonic()
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._engine = engine
        self._lease = lease
        self._takers = takers
        self._not_known = not_known
        self._holder = ""
        self._taker: SlotTaker | None = None  # whose slots get what was claimed
        for taker in takers:
            taker.begun()

    def most(self) -> int:
        """How many are of use now, 1 at least: where no other worker lives, as many as slots want here."""
        return max(1, *(each.most() for each in self._takers)) if self._lived_alone else PREFETCH_MAX

    def claim(self, queue: str, ids: Sequence[str], workers: int) -> Steps[list[Claimed]]:
        """Claim the first of these jobs, which the transaction has locked and found to be next of those that wait, as
        many as slots of this worker want. `workers`: how many live; one claims ahead no more than its part, for what
        waits for a slot here would keep others from their turns."""
        self.lives_alone = workers == 1
        taker = next((each for each in self._takers if queue in each.queues), None)
        count = 0 if taker is None else taker.wanted(queue, -(-len(ids) // max(1, workers)))
        holder = self._lease.holder
        if taker is None or holder is None or count <= 0:
            return []
        self._holder, self._taker = holder, taker
        return (yield from taker.claim(queue, ids[:count], holder))

    async def run(self, operation: Operation[T], claimed: Callable[[T], Sequence[Claimed]]) -> T:
        """Run it, and hand to the slots what it has claimed. It must not be repeated where it may have been stored."""
        try:
            result = await self._engine.arun(operation)
        except BaseException as error:
            self._not_known(error)
            raise
        finally:
            for taker in self._takers:
                taker.over()
            self.answered.set_result(None)
        if (jobs := claimed(result)) and self._taker is not None:
            # Also where its pool serves the queue no more, by an order that came meanwhile: then they are let go.
            self._taker.accept(jobs[0].queue, jobs, self._holder, time.monotonic() - self.since)
        return result


def _is_dry(look: QueueLook, queue: str) -> bool:
    """Whether nothing is known to be due in its lanes, no suspect either, and no limit bounds its claims.

    It is not where the lanes are to be looked at from the beginning: what became due is not known before, and a claimer
    whose buffer is kept full by others never looks.
    """
    view = look.views.get(queue)
    if view is None or view.has_more or view.wants_sweep(time.monotonic()):
        return False
    return not view.limit.is_there and view.suspects.due_at is None
