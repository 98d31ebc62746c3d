"""The log as a process sees it: gives places to what was published, and tells those who read how far it goes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from fencerow.core.model.wakeup import Placed, encode
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.db.engine import Engine
from fencerow.events.sequencer import LOCK, Memory, Sequenced, log_head, sequence

log = logging.getLogger("fencerow.events")

PLACED = encode(Placed())
AGAIN_S = 0.02  # while another process gives places
FORGET_S = 10.0  # a memory is never older: after a failover the log may have gone back behind it
REFUSED_S = 30.0  # longer than the server lets a process that is stopped keep the sequencer's lock
FORGET_COST = 50.0  # nor does it cost more than this part of the time to begin without


class Log:
    """What all readers of one process share. Its `tick` looks; `head` is what it saw."""

    def __init__(self, engine: Engine, telemetry: Telemetry, *, poll_s: float) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._poll_s = poll_s
        self._memory: Memory | None = None
        self._keep_until = 0.0
        self._listeners: list[Callable[[], None]] = []
        self._head = 0
        self.is_taken = False  # another process gave places at the last look
        self._placed_at = time.monotonic()  # when it was last seen that somebody can
        self._told_at = -REFUSED_S

    @property
    def head(self) -> int:
        """The greatest place that was known at the last look."""
        return self._head

    def on_growth(self, callback: Callable[[], None]) -> None:
        """Call back when the log has grown."""
        self._listeners.append(callback)

    async def look(self) -> float:
        """Give places to what has committed, and see how far the log goes. One writer gives them as it writes."""
        self.is_taken = not self._engine.traits.one_writer and await self._place()
        head = await self._engine.arun(log_head())
        if head != self._head:
            self._head, self._placed_at = head, time.monotonic()
            for callback in self._listeners:
                callback()
        return AGAIN_S if self.is_taken else self._poll_s

    async def _place(self) -> bool:
        """Give places until nothing is left; whether another process is at it."""
        placed, began = 0, time.monotonic()
        try:
            while (one := await self._one()).has_more and one.count:
                placed += one.count
        except BaseException:
            self._memory = None  # what it says may have been rolled back
            raise
        placed += one.count
        self._watch(refused=one.has_more and not placed)
        if placed:
            self._engine.wake([PLACED])
            self._telemetry.emit(Fact.EVENTS_PLACED, count=placed, duration_s=time.monotonic() - began)
        return one.has_more

    def _watch(self, *, refused: bool) -> None:
        """Another who gives places does so for moments. One who keeps the lock for long stops all events: say so."""
        now = time.monotonic()
        if not refused:
            self._placed_at = now
        elif now - max(self._placed_at, self._told_at) > REFUSED_S:
            self._told_at = now
            log.error(
                "events have got no places for %.0f s: another session holds the sequencer's lock (number %d, an "
                "advisory lock in pg_locks) and gives none; end that backend if it does nothing",
                now - self._placed_at,
                LOCK,
            )

    async def _one(self) -> Sequenced:
        began = time.monotonic()
        fresh = self._memory is None or began >= self._keep_until
        one = await self._engine.arun(sequence(None if fresh else self._memory, wait=False))
        if fresh and one.memory is not None:
            now = time.monotonic()
            self._keep_until = now + max(FORGET_S, FORGET_COST * (now - began))
        self._memory = one.memory
        return one
