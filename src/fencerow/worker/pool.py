"""A pool: the slots that serve one or several queues, and the claimed jobs that wait for one of them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

from fencerow.worker.attempt import Attempt

PREFETCH_MAX = 1000
WINDOW_S = 0.25  # over which the pace of the slots is measured
WINDOW_BRIEF_S = 0.02
IN_A_ROW_MAX = 50  # jobs that the slots may take before the event loop gets its turn
STALE_S = 3.0  # a claimed job that waits longer than this for a slot is better off elsewhere


class Pool:
    """Slots and the short buffer before them. Used on the event loop only."""

    def __init__(
        self, queues: Sequence[str], slots: int, prefetch_s: float, on_room: Callable[[], None]
    ) -> None:
        self.queues = tuple(queues)
        self.slots = slots
        self.running = 0
        self._prefetch_s = prefetch_s
        self._on_room = on_room
        # A heap: higher priority first, then in order of arrival.
        self._ready: list[tuple[int, int, Attempt]] = []
        self._numbers = count()
        self._idle: deque[asyncio.Future[None]] = deque()  # slots that wait, the longest first
        self._taken_in_a_row = 0
        self._window_began = time.monotonic()
        self._window_count = self._window_runs = 0  # jobs, and what a slot was free after: a job or a batch
        self._pace = 0.0  # jobs per second
        self._buffer = 0
        self._reach = 1  # jobs that a free slot is expected to take: as many as the last one could

    @property
    def waiting(self) -> int:
        """Claimed jobs that wait for a slot."""
        return len(self._ready)

    def wanted(self) -> int:
        """How many jobs the next claim should ask for; 0 while the buffer is more than half full."""
        buffer = self._buffer
        if self._ready and len(self._ready) > buffer // 2:
            return 0
        free = self.slots - self.running
        return max(0, min(free * self._reach + buffer, max(free + buffer, PREFETCH_MAX)) - len(self._ready))

    def put(self, attempt: Attempt) -> None:
        heappush(self._ready, (-attempt.claimed.priority, next(self._numbers), attempt))
        self._wake_one()

    async def get(self) -> Attempt:
        """The next claimed job; waits for one."""
        self._taken_in_a_row += 1
        if self._taken_in_a_row > IN_A_ROW_MAX:
            # Handlers that wait for nothing would keep the loop from the claims and outcomes that go on meanwhile.
            self._taken_in_a_row = 0
            await asyncio.sleep(0)
        while not self._ready:
            await self._arrival()
        self.running += 1
        _, _, attempt = heappop(self._ready)
        if not attempt.claimed.suspect:
            self._reach = attempt.handler.batch_max or 1
        if self.wanted() > 0:
            self._on_room()
        return attempt

    def joined(self, first: Attempt) -> list[Attempt]:
        """The attempt with those that wait here and can share its call, up to its `batch_max`.

        They are of the same name and time limit, the one limit of the call. A suspect shares with nobody: a
        death must count against one job.
        """
        room = (first.handler.batch_max or 1) - 1
        if first.claimed.suspect or room < 1:
            return [first]
        alike = [entry for entry in self._ready if _may_share(first, entry[2])]
        taken = sorted(alike, key=lambda entry: entry[:2])[:room]
        numbers = {number for _, number, _ in taken}
        self._ready = [entry for entry in self._ready if entry[1] not in numbers]
        heapify(self._ready)
        return [first, *(attempt for _, _, attempt in taken)]

    def done(self, jobs: int = 1) -> None:
        """A slot is free again; it has worked on so many jobs."""
        self.running -= 1
        self._window_count += jobs
        self._window_runs += 1
        self._measure()
        if self.wanted() > 0:
            self._on_room()

    def take_stale(self) -> list[Attempt]:
        """Claimed jobs that wait although the slots were thought to be quicker: give them back."""
        if self.running < self.slots:
            return []
        limit = time.monotonic() - STALE_S
        stale = [attempt for _, _, attempt in self._ready if attempt.taken < limit]
        if stale:
            self._pace, self._buffer, self._reach = 0.0, 0, 1
            self._ready = [entry for entry in self._ready if entry[2].taken >= limit]
            heapify(self._ready)
        return stale

    def take_all(self) -> list[Attempt]:
        """Empty the buffer: the worker shuts down or has lost its lease."""
        taken = [attempt for _, _, attempt in sorted(self._ready, key=lambda entry: entry[:2])]
        self._ready.clear()
        return taken

    def _measure(self) -> None:
        """A window ends early when the slots were filled several times over: a burst must not start slowly."""
        now = time.monotonic()
        enough_s = WINDOW_BRIEF_S if self._window_runs >= 4 * self.slots else WINDOW_S
        if now - self._window_began >= enough_s:
            self._pace = self._window_count / (now - self._window_began)
            self._window_began, self._window_count, self._window_runs = now, 0, 0
            # What the slots work off in `prefetch_s` at this pace; nothing before anything was measured.
            buffer = int(self._pace * self._prefetch_s)
            # A pace of a few jobs a second is long work: it is left to whoever has a free slot.
            self._buffer = min(PREFETCH_MAX, buffer) if buffer > self.slots else 0

    async def _arrival(self) -> None:
        """Wait to be woken. One arrival wakes one slot: a hundred idle ones must not all look."""
        self._taken_in_a_row = 0
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            if woken.done() and not woken.cancelled():
                self._wake_one()  # it was meant for whoever takes the job
            raise

    def _wake_one(self) -> None:
        while self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                return


def _may_share(first: Attempt, other: Attempt) -> bool:
    return (
        other.claimed.name == first.claimed.name
        and other.timeout_s == first.timeout_s
        and not other.claimed.suspect
    )
