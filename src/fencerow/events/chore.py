"""The chore by which a worker delivers events: one for all groups of its app."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from fencerow.core.chore import Chore
from fencerow.core.config import CoreConfig
from fencerow.core.model.wakeup import Placed, Published, WakeUp
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.events.declared import Consumer
from fencerow.events.log import Log
from fencerow.events.reader import GroupReader


@dataclass(frozen=True)
class Surroundings:
    """What the chore needs of its app, asked for when a worker begins."""

    engine: Callable[[], Engine]
    config: CoreConfig
    telemetry: Telemetry


class EventsChore(Chore):
    """Gives places to what was published, and has the groups of the app read."""

    name = "events"
    hears = (Published, Placed)

    def __init__(self, surroundings: Surroundings, declared: list[Consumer]) -> None:
        self._surroundings = surroundings
        self.declared = declared
        self._log: Log | None = None
        self._reader: GroupReader | None = None
        self._read_at = 0.0
        self._heard_placed = False
        self._ended = False
        self._looked = False
        self._turn = asyncio.Lock()

    @property
    def is_idle(self) -> bool:
        """Whether everything that was published is handled, as far as this process knows."""
        return self._looked and self._reader is not None and self._reader.is_idle

    async def queues_soon(self) -> bool:
        """Whether something that was published is not handled: whoever handles it may submit jobs."""
        async with self._turn:
            log, reader = self._built()
            await log.look()  # which wakes those who read, if there is something new
            return log.is_taken or not reader.is_idle

    def for_worker(self) -> Chore:
        return EventsChore(self._surroundings, self.declared)

    def told(self) -> str:
        """The groups that it reads for, with their topics."""
        groups = [f"{each.group} ({', '.join(each.topics)})" for each in self.declared]
        return f"consumers {', '.join(groups)}" if groups else "events get their positions"

    def is_for(self, message: WakeUp | None) -> bool:
        if isinstance(message, Placed):
            self._heard_placed = True
        return message is None or isinstance(message, Published | Placed)

    async def tick(self) -> float:
        async with self._turn:
            return await self._look() if not self._ended else self._surroundings.config.poll_max_s

    async def _look(self) -> float:
        log, reader = self._built()
        if time.monotonic() >= self._read_at:
            # First: a group that begins at the end begins before what is published from now on.
            self._read_at = time.monotonic() + await reader.look()
        if self._heard_placed:
            self._heard_placed = False
            reader.wake(asides=True)  # placed, or to be tried again
        pause_s = await log.look()
        self._looked = True
        return min(pause_s, max(0.001, self._read_at - time.monotonic()))

    async def end(self, within_s: float) -> None:
        async with self._turn:
            self._ended = True
            if self._reader is not None:
                await self._reader.end(within_s)

    def _built(self) -> tuple[Log, GroupReader]:
        if self._log is None or self._reader is None:
            engine, config = self._surroundings.engine(), self._surroundings.config
            self._log = Log(engine, self._surroundings.telemetry, poll_s=config.poll_max_s)
            self._reader = GroupReader(engine, self.declared, self._log, config, self._surroundings.telemetry)
        return self._log, self._reader
