"""The steps of a shutdown; their order is `Worker.stop`'s."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from fencerow.core.config import CoreConfig
from fencerow.core.model.handler import Handler
from fencerow.core.worker.acker import Acker
from fencerow.core.worker.attempt import Attempt, Interrupt
from fencerow.core.worker.life import Life
from fencerow.core.worker.lines import listed
from fencerow.core.worker.roster import Roster
from fencerow.db.text import amount

log = logging.getLogger("fencerow.worker")

LOOK_S = 0.02
FLUSH_S = 10.0
TASKS_S = 2.0
KILLED_S = 2.0


class Shutdown:
    """Lets jobs end, interrupts them, releases them. Used on the event loop only."""

    def __init__(self, roster: Roster, life: Life, acker: Acker, *, kill_s: float) -> None:
        self._roster = roster
        self._life = life
        self._acker = acker
        self._kill_s = kill_s

    def release_waiting(self) -> None:
        """Release everything that waits for a slot."""
        for pool in self._roster.pools:
            for attempt in pool.take_all():
                self._life.release(attempt)

    async def drained(self, limit_s: float, hurried: Callable[[], bool]) -> None:
        """Wait for running handlers, at most this long, or until somebody is in a hurry."""
        deadline = time.monotonic() + limit_s
        while self._roster.any_running() and time.monotonic() < deadline:
            if hurried():
                return
            self.release_waiting()
            await asyncio.sleep(LOOK_S)

    def tell(self, worker: str, why: str, limit_s: float, *, by_signal: bool) -> None:
        """Say why the worker stops, and what it waits for: that may last as long as the longest job."""
        running = self.running()
        because = f" ({why})" if why else ""
        rest = f", which may take {limit_s:g} s to end" if running and limit_s else ""
        if rest and by_signal:
            rest += " (a second signal releases them at once)"
        text = "worker %s stops%s and claims no more; %s%s%s"
        run = amount(len(running), "job runs", "jobs run")
        log.info(text, worker, because, run, rest, listed(running, len(running)))

    def running(self) -> list[str]:
        """The ids of the jobs whose handlers run."""
        return [attempt.claimed.id for attempt in self._roster.held.values() if _is_running(attempt)]

    async def end_running(self) -> None:
        """Interrupt what still runs, and release what does not listen."""
        if running := self.running():
            text = "%s cancelled and released%s"
            still = amount(len(running), "job that still runs is", "jobs that still run are")
            log.warning(text, still, listed(running, len(running)))
        for attempt in list(self._roster.held.values()):
            attempt.end(Interrupt.SHUTDOWN)
        await self._ended(min(1.0, self._kill_s))
        for attempt in list(self._roster.held.values()):
            attempt.give_up_now()
        self.release_waiting()
        await self._ended(KILLED_S)  # child processes were killed: what became of their jobs is known soon

    async def _ended(self, limit_s: float) -> None:
        """Wait until no handler runs, at most this long."""
        deadline = time.monotonic() + limit_s
        while self._roster.any_running() and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)

    async def outcomes_written(self) -> None:
        """Wait for the acker, but not for ever."""
        if not await self._acker.flushed(FLUSH_S):
            log.error(
                "%s could not be written; leases and the reaper settle what became of the jobs",
                amount(self._acker.backlog, "outcome"),
            )


def _is_running(attempt: Attempt) -> bool:
    return attempt.may_start and not attempt.is_over


def drain_s(config: CoreConfig, handlers: Mapping[str, Handler]) -> float:
    """How long running handlers may take to end by themselves, the slowest in mind."""
    longest = max((handler.timeout_s or 0.0 for handler in handlers.values()), default=0.0)
    return config.drain_s(longest)


async def tasks_ended(tasks: set[asyncio.Task[None]], worker: str) -> None:
    """A handler that swallows every cancel keeps its task; the worker does not wait for it for ever."""
    for task in tasks:
        task.cancel()
    if not tasks:
        return
    _, left = await asyncio.wait(tasks, timeout=TASKS_S)
    if left:
        swallowing = amount(len(left), "handler swallows", "handlers swallow")
        log.error("%s every cancel, and still there, in worker %s", swallowing, worker)
