"""The chores of a worker, each with its loop: event drainers, those of wings, and whatever else runs beside the jobs.

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
        self._telemetry = telemetry
        self._hearing: list[tuple[Chore, Loop]] = []
        self._given = [self._looped(chore_of(each).for_worker()) for each in chores]
        self._ending: list[asyncio.Task[None]] = []

    @property
    def loops(self) -> list[Loop]:
        """All of them."""
        return [loop for _, loop in self._hearing]

    def add(self, chores: Sequence[Chore]) -> None:
        """Those of wings, made for this worker: they hear wake-ups as the others do, and hold nothing, so they go on
        for as long as the worker has loops."""
        for each in chores:
            self._looped(each)

    def _looped(self, chore: Chore) -> tuple[Chore, Loop]:
        loop = Loop(
            chore.name,
            chore.tick,
            self._telemetry,
            jitter=chore.jitter,
            background=True,
            portion=chore.portion,
        )
        self._hearing.append((chore, loop))
        return self._hearing[-1]

    def tell(self, message: WakeUp | None) -> None:
        """Wake those that a message is for."""
        for chore, loop in self._hearing:
            try:
                if chore.is_for(message):
                    loop.wake()
            except Exception:
                log.exception("chore %s could not hear a wake-up; it looks by itself", loop.name)

    def are_idle(self) -> bool:
        """Whether those that come to an end have come to it."""
        return all(each.is_idle for each, _ in self._given)

    def end(self, within_s: float) -> None:
        """Stop their loops, and let those that hold something give it back within this time."""
        for chore, loop in self._given:
            loop.stop()
            self._ending.append(asyncio.create_task(chore.end(within_s), name=f"fencerow-end-{chore.name}"))

    async def ended(self) -> None:
        """Wait until all have given back what they held, or could not: the worker signs off all the same."""
        ends = await asyncio.gather(*self._ending, return_exceptions=True)
        for task, error in zip(self._ending, ends, strict=True):
            if isinstance(error, BaseException):
                log.error("%s met an error: %s", task.get_name(), error, exc_info=error)
