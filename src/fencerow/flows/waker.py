"""Wakes jobs of flows in every worker, with no leader: when it hears of ends, and every few seconds beneath.

A slow look finds ends that were never written, as somebody moved or removed jobs by hand.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from fencerow.core.chore import Chore
from fencerow.core.model.wakeup import Arrived, FlowMoved, JobsEnded, WakeUp, encode, encode_ended
from fencerow.core.store.hints import hints_of, hints_of_queued
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.db.text import amount
from fencerow.flows.waits import wake_waiters
from fencerow.flows.waking import NIL, Advanced, advance, flows_wanted, mend

log = logging.getLogger("fencerow.worker.flows")

POLL_S = 5.0
LEFT_S = 0.2  # until the next look, where somebody else has locked what is to be moved
MEND_EVERY_S = 30.0
MEND_ROWS = 1_000


class FlowWaker(Chore):
    """One transaction after another, as long as there is something to tell."""

    name = "flows"
    hears = (FlowMoved, JobsEnded)

    def __init__(self, engine: Callable[[], Engine], telemetry: Telemetry) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._live = True  # whether there are flows that have not ended, as far as it knows
        self._heard = True  # whether an end may be there to tell
        self._looks = False  # whether it is at that, or was broken off
        self._mended_at = time.monotonic()
        self._after = NIL

    def for_worker(self) -> Chore:
        return FlowWaker(self._engine, self._telemetry)

    def is_for(self, message: WakeUp | None) -> bool:
        """Ends are for it as long as there are flows: a program without any does not pay for them."""
        is_end = isinstance(message, JobsEnded) and self._live
        hears = message is None or isinstance(message, FlowMoved) or is_end
        self._heard = self._heard or hears
        return hears

    @property
    def is_idle(self) -> bool:
        """Whether it has looked since it heard of an end, and nothing was to be told."""
        return not (self._heard or self._looks)

    async def tick(self) -> float:
        """Wake who goes on; returns the pause until the next look."""
        self._heard, self._looks = False, True
        wanted = await self._engine().arun(flows_wanted())
        self._live = wanted.live
        pause_s = POLL_S
        if wanted.untold:
            self._heard = True
            pause_s = await self._advance()
        # Ends that a stranger keeps from being told keep nobody from the rest.
        if wanted.awaited:
            woken = await self._engine().arun(wake_waiters(actor=None))
            self._engine().wake(hints_of_queued(woken))
        if wanted.live and time.monotonic() >= self._mended_at + MEND_EVERY_S:
            pause_s = min(pause_s, await self._mend())
        self._looks = False
        return pause_s

    async def _advance(self) -> float:
        done = await self._engine().arun(advance(actor=None))
        self._engine().wake(hints(done))
        self._telemetry.counters.add("flow_jobs_woken", len(done.queued))
        is_quiet = done.left or not done.moved
        return LEFT_S if is_quiet else 0.0

    async def _mend(self) -> float:
        mended = await self._engine().arun(mend(self._after, limit=MEND_ROWS))
        self._after = mended.after or NIL
        if not mended.after:
            self._mended_at = time.monotonic()
        if mended.ids:
            count = amount(len(mended.ids), "end")
            log.warning("%s of flows had not been told: somebody moved or removed the jobs by hand", count)
        return 0.0 if mended.ids or mended.after else POLL_S


def hints(done: Advanced) -> list[str]:
    """What others are to hear: jobs were queued, or have ended."""
    ended = encode_ended(each.id for each in done.cancelled if each.awaited)
    free = [encode(Arrived())] if any(each.had_turns for each in done.cancelled) else []
    return [*hints_of_queued(done.queued), *hints_of(done.made), *ended, *free]
