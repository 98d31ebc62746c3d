"""Slots of workers in a simulation: jobs are claimed in the order in which they are due, under limits of queues."""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush

from fencerow.limits.definition import Limit
from fencerow.limits.room import LimitState, after_starts, room_now
from fencerow.planning.bounds import is_bound
from fencerow.planning.gating import SimulatedJob
from fencerow.planning.plan import Plan
from fencerow.turns.limiting import Held


class Slots:
    """What is queued, and what runs in which pool of slots."""

    def __init__(self, plan: Plan) -> None:
        self._workers = plan.workers
        self._limits = [each for each in plan.limits if each.is_of_queues]
        self._states: dict[str, LimitState] = {}
        self._held: Counter[str] = Counter()
        self._queued: dict[str, list[tuple[tuple[int, int], SimulatedJob]]] = {
            job.queue: [] for job in plan.jobs
        }
        self.running: Counter[str] = Counter()  # by pool

    def queue(self, job: SimulatedJob) -> None:
        """It may start."""
        heappush(self._queued[job.kind.queue], (job.order, job))

    def claim(self, now_us: int) -> tuple[list[SimulatedJob], int | None]:
        """What starts now, and when time lets more start under the limits of queues."""
        started: list[SimulatedJob] = []
        again_us: list[int] = []
        queues = {queue for queue, found in self._queued.items() if found}
        while queues:
            queue = min(queues, key=lambda each: self._queued[each][0][0])
            job = self._queued[queue][0][1]
            if not self._is_free(queue) or not self._may_start(job, now_us, again_us):
                queues.remove(queue)
                continue
            heappop(self._queued[queue])
            self._start(job, now_us)
            started.append(job)
            if not self._queued[queue]:
                queues.remove(queue)
        return started, min(again_us, default=None)

    def end(self, job: SimulatedJob) -> None:
        """Its slot is free."""
        self.running[self._workers.pool_of(job.kind.queue)] -= 1
        self._held.subtract(limit.name for limit in self._of(job))

    def _is_free(self, queue: str) -> bool:
        pool = self._workers.pool_of(queue)
        return self.running[pool] < self._workers.processes * self._workers.slots[pool]

    def _may_start(self, job: SimulatedJob, now_us: int, again_us: list[int]) -> bool:
        for limit in self._of(job):
            state = self._states.get(limit.name, LimitState())
            room = room_now(limit, state, now_us, Held(self._held[limit.name]), wanted=1)
            if not room.count:
                again_us += [] if room.again_us is None else [room.again_us]
                self._states[limit.name] = after_starts(limit, state, now_us, (), waits=True)
                return False
        return True

    def _start(self, job: SimulatedJob, now_us: int) -> None:
        self.running[self._workers.pool_of(job.kind.queue)] += 1
        for limit in self._of(job):
            state = self._states.get(limit.name, LimitState())
            after = after_starts(limit, state, now_us, (str(job.number),))
            # It starts in the same instant in which it is claimed.
            self._states[limit.name] = LimitState(after.tat_us, after.breaker, "", after.owed)
            self._held[limit.name] += 1

    def _of(self, job: SimulatedJob) -> list[Limit]:
        return [limit for limit in self._limits if is_bound(job.kind, limit)]
