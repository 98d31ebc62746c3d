"""A claim that goes out in the turn of the event loop in which its hint came.

The claimer's loop would be woken by the hint, look at all of its queues, ask, and be woken by the answer. A worker that
has nothing else to do needs neither turn: the hint sends the claim, and the answer hands its jobs to the slots.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from fencerow.core.model.job import Claimed
from fencerow.db.engine import Begins, Engine
from fencerow.db.run import Operation

LATE_S = 0.001  # of a look, rather than another timer


class HintedClaims:
    """The claims of one claimer that are sent beside its loop, one at a time. Used on the event loop only.

    `woken` wakes the loop. It claims nothing while one of these is under way.
    """

    def __init__(self, engine: Engine, woken: asyncio.Event) -> None:
        self.since: float | None = None  # when the one under way was sent
        self._begins = engine if isinstance(engine, Begins) else None
        self._woken = woken
        self._over: asyncio.Future[None] | None = None  # somebody waits for the answer
        self._fault: Exception | None = None
        self._look: asyncio.TimerHandle | None = None
        self._look_at = 0.0

    @property
    def is_free(self) -> bool:
        """Whether one may be sent: none is under way, and this engine can send it."""
        return self.since is None and self._begins is not None

    def begin(
        self,
        claim: Operation[list[Claimed]],
        brought: Callable[[list[Claimed]], object],
        noted: Callable[[list[Claimed]], float],
        failed: Callable[[BaseException], object],
    ) -> bool:
        """Send it. False: nothing was sent.

        What it brings goes to `brought`, which hands it to the slots, and behind the steps of those to `noted`, which
        returns within how many seconds the loop shall look. Why it failed goes to `failed`; the loop claims again, and
        meets what is still wrong.
        """

        def answered(jobs: list[Claimed], error: BaseException | None) -> None:
            try:
                if error is None:
                    brought(jobs)
                    # Behind the slots that were woken: they need not wait for what is noted.
                    asyncio.get_running_loop().call_soon(self._settled, partial(noted, jobs))
                    return
                failed(error)
            except Exception as fault:  # the loop ends of it, as of its own
                self._fault = fault
            self._settled(_at_once)

        began = time.monotonic()
        if self._begins is None or not self._begins.begin(claim, answered):
            return False
        self.since = began
        return True

    def under_way(self) -> asyncio.Future[None] | None:
        """What is done when the one that is under way is answered."""
        if self.since is not None and (self._over is None or self._over.done()):
            self._over = asyncio.get_running_loop().create_future()
        return None if self.since is None else self._over

    async def answered(self) -> None:
        """Wait for the one that is under way. Raises what went wrong behind an answer, once."""
        if (over := self.under_way()) is not None:
            await over
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault

    def _settled(self, noted: Callable[[], float]) -> None:
        self.since = None
        pause_s = 0.0
        try:
            pause_s = noted()
        except Exception as fault:
            self._fault = fault
        if pause_s > 0:
            self._look_within(pause_s)
        else:
            self._woken.set()
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def _look_within(self, pause_s: float) -> None:
        """The loop sleeps for as long as it knew of nothing: wake it sooner."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._look is not None:
            if now < self._look_at <= now + pause_s + LATE_S:
                return
            self._look.cancel()
        self._look_at = now + pause_s  # not asked of the handle: uvloop's may have no `when`
        self._look = loop.call_at(self._look_at, self._woken.set)


def _at_once() -> float:
    return 0.0
