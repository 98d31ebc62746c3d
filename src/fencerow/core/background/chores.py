"""The chores of a worker, each with its loop: event drainers, those of wings, and whatever else runs beside the jobs.

None of them is the core's: whatever a chore raises, the jobs and the other chores go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fencerow.core.background.dormant import Dormant
from fencerow.core.background.loop import Loop
from fencerow.core.background.sleepers import Sleepers
from fencerow.core.chore import Chore, Ticking, chore_of
from fencerow.core.model.wakeup import WakeUp
from fencerow.core.telemetry import Telemetry

log = logging.getLogger("fencerow.worker")


@dataclass(slots=True)
class _Run:
    """A chore, and the loop that ticks for it now."""

    chore: Chore
    loop: Loop


class Chores:
    """Wakes them, ends them, and knows whether they are idle. Used on the event loop only.

    `start` is called with the loop of each that has slept: it runs from then on.
    """

    def __init__(
        self, chores: Sequence[Chore | Ticking], telemetry: Telemetry, start: Callable[[Loop], None]
    ) -> None:
        self._telemetry = telemetry
        self._start = start
        self._sleepers = Sleepers(self._roused)
        self._asleep = Loop(
            "dormant chores", self._sleepers.tick, telemetry, background=True, stands_apart=True
        )
        self._given = self._runs(chore_of(each).for_worker() for each in chores)
        self._all = list(self._given)
        self._hearing: dict[
            type[WakeUp], list[_Run]
        ] = {}  # by kinds of wake-ups: an end asks no more than these
        self._ending: list[asyncio.Task[None]] = []

    @property
    def loops(self) -> list[Loop]:
        """All of them; those that sleep have one together."""
        return list(dict.fromkeys(each.loop for each in self._all))

    def add(self, chores: Iterable[Chore]) -> None:
        """Those of wings, made for this worker: they hear wake-ups as the others do, and hold nothing, so they go on
        for as long as the worker has loops."""
        self._all += self._runs(chores)
        self._hearing.clear()

    def _runs(self, chores: Iterable[Chore]) -> list[_Run]:
        made: list[_Run] = []
        for each in chores:
            if isinstance(each, Dormant):
                self._sleepers.add(each)
                made.append(_Run(each, self._asleep))
            else:
                made.append(_Run(each, self._loop_of(each)))
        return made

    def _loop_of(self, chore: Chore) -> Loop:
        return Loop(
            chore.name,
            chore.tick,
            self._telemetry,
            jitter=chore.jitter,
            background=True,
            portion=chore.portion,
        )

    def _roused(self, chore: Dormant) -> None:
        loop = self._loop_of(chore)
        for each in self._all:
            if each.chore is chore:
                each.loop = loop
        self._start(loop)

    def tell(self, message: WakeUp | None) -> None:
        """Wake those that a message is for."""
        for each in self._all if message is None else self._who_hear(type(message)):
            try:
                if each.chore.is_for(message):
                    each.loop.wake()
            except Exception:
                log.exception("chore %s could not hear a wake-up; it looks by itself", each.chore.name)

    def _who_hear(self, kind: type[WakeUp]) -> Sequence[_Run]:
        if kind not in self._hearing:
            self._hearing[kind] = [each for each in self._all if issubclass(kind, each.chore.hears)]
        return self._hearing[kind]

    def are_idle(self) -> bool:
        """Whether those that come to an end have come to it."""
        return all(each.chore.is_idle for each in self._given)

    async def queue_soon(self) -> bool:
        """Whether one of them will make jobs due at once, as far as the database tells."""
        return any([await each.chore.queues_soon() for each in self._given])

    def end(self, within_s: float) -> None:
        """Stop their loops, and let those that hold something give it back within this time."""
        for each in self._given:
            chore = each.chore
            if each.loop is not self._asleep:
                each.loop.stop()
            elif isinstance(chore, Dormant):
                self._sleepers.dismiss(chore)
            self._ending.append(asyncio.create_task(chore.end(within_s), name=f"fencerow-end-{chore.name}"))

    async def ended(self) -> None:
        """Wait until all have given back what they held, or could not: the worker signs off all the same."""
        ends = await asyncio.gather(*self._ending, return_exceptions=True)
        for task, error in zip(self._ending, ends, strict=True):
            if isinstance(error, BaseException):
                log.error("%s met an error: %s", task.get_name(), error, exc_info=error)
