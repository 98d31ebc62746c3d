"""The chores of a worker, each with its loop: event drainers and whatever else runs beside the jobs.

None of them is the core's: whatever a chore raises, the jobs and the other chores go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from fencerow.core.background.loop import Loop
from fencerow.core.chore import Chore, Ticking, chore_of
from fencerow.core.model.wakeup import WakeUp
from fencerow.core.telemetry import Telemetry

log = logging.getLogger("fencerow.worker")


class Chores:
    """Wakes them, ends them, and knows whether they are idle. Used on the event loop only."""

    def __init__(self, chores: Sequence[Chore | Ticking], telemetry: Telemetry) -> None:
        self._chores = [chore_of(each).for_worker() for each in chores]
        self.loops = [
            Loop(each.name, each.tick, telemetry, jitter=each.jitter, background=True)
            for each in self._chores
        ]
        self._ending: list[asyncio.Task[None]] = []

    def tell(self, message: WakeUp | None) -> None:
        """Wake those that a message is for."""
        for chore, loop in zip(self._chores, self.loops, strict=True):
            try:
                if chore.is_for(message):
                    loop.wake()
            except Exception:
                log.exception("chore %s could not hear a wake-up; it looks by itself", loop.name)

    def are_idle(self) -> bool:
        """Whether those that come to an end have come to it."""
        return all(each.is_idle for each in self._chores)

    def end(self, within_s: float) -> None:
        """Stop their loops, and let those that hold something give it back within this time."""
        for chore, loop in zip(self._chores, self.loops, strict=True):
            loop.stop()
            self._ending.append(asyncio.create_task(chore.end(within_s), name=f"fencerow-end-{chore.name}"))

    async def ended(self) -> None:
        """Wait until all have given back what they held, or could not: the worker signs off all the same."""
        ends = await asyncio.gather(*self._ending, return_exceptions=True)
        for task, error in zip(self._ending, ends, strict=True):
            if isinstance(error, BaseException):
                log.error("%s met an error: %s", task.get_name(), error, exc_info=error)
