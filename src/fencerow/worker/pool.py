"""A pool: the slots that serve one or several queues, and the claimed jobs that wait for one of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from fencerow.worker.attempt import Attempt

PREFETCH_MAX = 1000
SMOOTHING = 0.05


class Pool:
    """Slots and the short buffer before them. Used on the event loop only."""

    def __init__(self, queues: Sequence[str], slots: int, prefetch_s: float, on_room: Callable[[], None]) -> None:
        self.queues = tuple(queues)
        self.slots = slots
        self.running = 0
        self._prefetch_s = prefetch_s
        self._on_room = on_room
        self._ready: deque[Attempt] = deque()
        self._arrived = asyncio.Event()
        self._mean_s: float | None = None

    @property
    def waiting(self) -> int:
        """Claimed jobs that wait for a slot."""
        return len(self._ready)

    def wanted(self) -> int:
        """How many jobs the next claim should ask for; 0 while the buffer is more than half full."""
        buffer = self._buffer_max()
        if self._ready and len(self._ready) > buffer // 2:
            return 0
        return max(0, self.slots - self.running + buffer - len(self._ready))

    def put(self, attempt: Attempt) -> None:
        self._ready.append(attempt)
        self._arrived.set()

    async def get(self) -> Attempt:
        """The next claimed job; waits for one."""
        while not self._ready:
            self._arrived.clear()
            await self._arrived.wait()
        self.running += 1
        attempt = self._ready.popleft()
        if self.wanted() > 0:
            self._on_room()
        return attempt

    def done(self, duration_s: float) -> None:
        """A slot is free again after this long."""
        self.running -= 1
        if self._mean_s is None:
            self._mean_s = duration_s
        else:
            self._mean_s += SMOOTHING * (duration_s - self._mean_s)
        if self.wanted() > 0:
            self._on_room()

    def take_all(self) -> list[Attempt]:
        """Empty the buffer: the worker shuts down or has lost its lease."""
        taken = list(self._ready)
        self._ready.clear()
        return taken

    def _buffer_max(self) -> int:
        """What the slots work off in `prefetch_s`; nothing before anything was measured."""
        if self._mean_s is None:
            return 0
        return min(PREFETCH_MAX, int(self.slots * self._prefetch_s / max(self._mean_s, 1e-6)))
