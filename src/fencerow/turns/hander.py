"""Gives free turns to jobs that wait for them: in every worker, with no leader.

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

from fencerow.core.chore import Chore, Site
from fencerow.core.model.wakeup import Arrived, WakeUp
from fencerow.core.store.hints import in_lanes
from fencerow.core.telemetry import Fact
from fencerow.turns import looks
from fencerow.turns.gates import ROOM_MAX
from fencerow.turns.handing import BESIDE, GATES_MAX, HandedOver, hand_over, take_turns_back, taking_over
from fencerow.turns.looks import TurnsWanted
from fencerow.turns.marks import ArrivalMark

log = logging.getLogger("fencerow.worker")

SWEEP_S_MIN = 5.0
SWEEP_SHARE = (
    10.0  # of its cost: the pause after a part of a sweep that gave no turn; after one that did there is none
)
SWEEP_S_MAX = 5.0  # but no longer: a part that waited for a lock or for the database cost nobody that time
TAKEN_S = 0.02  # until the next look, where another worker had taken what was there
AT_ONCE = TurnsWanted(arrived=True, due_us=None)


class Hander(Chore):
    """One look after another. Used on the event loop only."""

    name = "turns"
    hears = (Arrived,)
    jitter = 0.0  # all workers wake when a turn is due; the look itself spreads them

    def __init__(self, site: Site) -> None:
        self._site = site
        self._engine = site.engine
        self._poll_max_s = site.config.poll_max_s
        self._turn_claim_s = site.config.turn_claim_s
        self._actor = f"worker {site.worker}"
        self._swept = ""  # up to this gate
        self._sweep_at = time.monotonic()  # but arrivals come first, for a while
        self._mark = ArrivalMark()
        self._beside = BESIDE
        self._more = False  # the last look gave all that one may: there is more, and nobody need be asked

    def is_for(self, message: WakeUp | None) -> bool:
        """Whether somebody came to a gate or left one, as far as is known."""
        return message is None or isinstance(message, Arrived)

    async def tick(self) -> float:
        """Hand over what is free; returns the seconds until the next look."""
        after = self._mark.after(time.monotonic())
        wanted = AT_ONCE if self._more else await self._engine.arun(looks.turns_wanted(after))
        if not after:
            self._mark.looked_at_all(time.monotonic())
        comes_first = (
            wanted.at_once and not self._swept
        )  # arrivals go before a sweep, not before each part of it
        if time.monotonic() >= self._sweep_at + SWEEP_S_MIN * comes_first:
            await self._sweep()
        return min(self._poll_max_s, await self._hand_over(wanted, after))

    async def _hand_over(self, wanted: TurnsWanted, after: int) -> float:
        """Give the turns that are free; returns the seconds until the next look at gates."""
        if not wanted.at_once:
            if wanted.due_us is None:
                return self._poll_max_s
            # All workers sleep until that instant: whoever wakes first does it, and the others see that it is done.
            return wanted.due_us / 1e6 + random.uniform(0, TAKEN_S)  # noqa: S311 (a moment, no secret)
        self._more = False
        handed = await self._handed(after)
        # Where one look gave many turns, the next may: for a limit that lets one go at a time few gates are locked.
        given = len(handed.queued) + len(handed.claimed)
        # Where nobody of many needed another gate, none is looked for: it would be read of each, for nothing.
        self._beside = 0 if handed.alike else min(ROOM_MAX, max(BESIDE, 2 * given, self._beside // 2))
        self._more = handed.more
        self._tell(handed)
        self._mark.took(handed.last, time.monotonic())
        return 0.0 if handed.more else TAKEN_S

    async def _handed(self, after: int) -> HandedOver:
        """Where slots of this worker want jobs they get those who have a turn now, in one write."""
        due, beside = self._site.due(), self._beside
        if (taking := await self._site.taking()) is None:
            return await self._engine.arun(hand_over(due=due, after=after, beside=beside))
        looking = taking_over(taking, due=due, after=after, beside=beside)
        return await taking.run(looking, lambda handed: handed.claimed)

    def _tell(self, handed: HandedOver) -> None:
        self._site.announce(in_lanes(handed.queued))
        for each in handed.news:
            log.warning("%s", each)

    def _count(self, handed: HandedOver) -> None:
        """Turns that nothing but the sweep found: no arrival lay at any gate, and no job there had become due."""
        for queue, count in Counter(each.queue for each in handed.queued).items():
            self._site.telemetry.emit(Fact.TURNS_SWEPT, queue=queue, count=count)

    async def _sweep(self) -> None:
        """Look at the next gates, those without room too; from the beginning when the last was reached."""
        began = time.monotonic()
        gates = await self._engine.arun(looks.gates_after(self._swept))
        given = False
        if gates:
            back = take_turns_back(gates, unclaimed_s=self._turn_claim_s, actor=self._actor)
            await self._engine.arun(back)
            was_told = (await self._engine.arun(looks.turns_wanted())).at_once
            left = await self._engine.arun(looks.gates_left(gates, due=self._site.due()))
            for first in range(0, len(left), GATES_MAX):
                some = left[first : first + GATES_MAX]
                handed = await self._engine.arun(hand_over(some, due=self._site.due()))
                given = given or bool(handed.queued)
                self._tell(handed)
                if not was_told:
                    self._count(handed)
        self._swept = gates[-1] if gates else ""
        cost_s = time.monotonic() - began
        pause_s = 0.0 if given else min(SWEEP_S_MAX, cost_s * SWEEP_SHARE)
        self._sweep_at = time.monotonic() + max(0.0 if gates else SWEEP_S_MIN, pause_s)
