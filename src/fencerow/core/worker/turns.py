"""Gives free turns to jobs that wait for them, and jobs that have waited long enough for a label to anybody: in every
worker, with no leader.

It looks when it hears that somebody came to a gate or left one, when a job at a gate becomes due, and every
`poll_max_s`, because a wake-up may be lost. Beneath, it sweeps all gates where jobs wait: a queue goes on, a waiting
job is changed, the clock went back behind what was due, and no arrival tells of it. The sweep also lets turns go on
that nobody uses: of jobs in paused queues, and of those that nobody claims.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter

from fencerow.core.db.clock import CarriedClock
from fencerow.core.db.engine import Engine
from fencerow.core.store import store
from fencerow.core.store.turns import GATES_MAX, HandedOver, TurnsWanted
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.wakeups import WakeUps

log = logging.getLogger("fencerow.worker")

SWEEP_S_MIN = 5.0
SWEEP_SHARE = (
    10.0  # of its cost: the pause after a part of a sweep that gave no turn; after one that did there is none
)
SWEEP_S_MAX = 5.0  # but no longer: a part that waited for a lock or for the database cost nobody that time
TAKEN_S = 0.02  # until the next look, where another worker had taken what was there


class Turns:
    """One look after another. Used on the event loop only."""

    def __init__(
        self,
        engine: Engine,
        wakeups: WakeUps,
        clock: CarriedClock,
        telemetry: Telemetry,
        *,
        poll_max_s: float,
        turn_claim_s: float,
        actor: str,
    ) -> None:
        self._engine = engine
        self._wakeups = wakeups
        self._clock = clock
        self._telemetry = telemetry
        self._poll_max_s = poll_max_s
        self._turn_claim_s = turn_claim_s
        self._actor = actor
        self._swept = ""  # up to this gate
        self._sweep_at = 0.0  # monotonic
        self._locked_s = (
            0.0  # the pause after a look that found only locked jobs whose wait for a label is over
        )
        self._fall_back_at = 0.0  # monotonic: then it ends

    async def tick(self) -> float:
        """Hand over what is free; returns the seconds until the next look."""
        if time.monotonic() >= self._sweep_at:
            await self._sweep()
        wanted = await self._engine.arun(store.turns_wanted())
        fall_back_s = await self._fall_back(wanted.fallback_us)
        hand_over_s = await self._hand_over(wanted)
        return min(self._poll_max_s, fall_back_s, hand_over_s)

    async def _fall_back(self, over_us: int | None) -> float:
        """Queue jobs whose wait for a label is over; returns the seconds until the next look at them.

        What somebody else has locked is over still: it is asked for less and less often.
        """
        if over_us is None or over_us > 0:
            return self._poll_max_s if over_us is None else over_us / 1e6
        now_s = time.monotonic()
        if now_s < self._fall_back_at:
            return self._fall_back_at - now_s
        queued = await self._engine.arun(store.fall_back(actor=self._actor))
        self._wakeups.announce_queued(queued)
        self._locked_s = 0.0 if queued else min(self._poll_max_s, 2 * self._locked_s or TAKEN_S)
        self._fall_back_at = now_s + self._locked_s
        return self._locked_s

    async def _hand_over(self, wanted: TurnsWanted) -> float:
        """Give the turns that are free; returns the seconds until the next look at gates."""
        if not wanted.at_once:
            if wanted.due_us is None:
                return self._poll_max_s
            # All workers sleep until that instant: whoever wakes first does it, and the others see that it is done.
            return wanted.due_us / 1e6 + random.uniform(0, TAKEN_S)  # noqa: S311 (a moment, no secret)
        handed = await self._engine.arun(store.hand_over(due=self._clock.due()))
        self._tell(handed)
        return 0.0 if handed.more else TAKEN_S

    def _tell(self, handed: HandedOver) -> None:
        self._wakeups.announce_queued(handed.queued)
        for each in handed.news:
            log.warning("%s", each)

    def _count(self, handed: HandedOver) -> None:
        """Turns that nothing but the sweep found: no arrival lay at any gate, and no job there had become due."""
        for queue, count in Counter(each.queue for each in handed.queued).items():
            self._telemetry.emit(Fact.TURNS_SWEPT, queue=queue, count=count)

    async def _sweep(self) -> None:
        """Look at the next gates, those without room too; from the beginning when the last was reached."""
        began = time.monotonic()
        gates = await self._engine.arun(store.gates_after(self._swept))
        given = False
        if gates:
            back = store.take_turns_back(gates, unclaimed_s=self._turn_claim_s, actor=self._actor)
            await self._engine.arun(back)
            was_told = (await self._engine.arun(store.turns_wanted())).at_once
            left = await self._engine.arun(store.gates_left(gates, due=self._clock.due()))
            for first in range(0, len(left), GATES_MAX):
                some = left[first : first + GATES_MAX]
                handed = await self._engine.arun(store.hand_over(some, due=self._clock.due()))
                given = given or bool(handed.queued)
                self._tell(handed)
                if not was_told:
                    self._count(handed)
        self._swept = gates[-1] if gates else ""
        cost_s = time.monotonic() - began
        pause_s = 0.0 if given else min(SWEEP_S_MAX, cost_s * SWEEP_SHARE)
        self._sweep_at = time.monotonic() + max(0.0 if gates else SWEEP_S_MIN, pause_s)
