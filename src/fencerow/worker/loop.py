"""A loop of the worker, written once: tick, wait, wake, meet trouble, stop.

Database trouble is waited out with a growing pause; any other error ends the loop, and a loop that
ended takes the worker down with its reason: half a worker looks alive and does nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from fencerow.db.trouble import is_trouble
from fencerow.telemetry import Event, Telemetry

log = logging.getLogger("fencerow.worker")

TROUBLE_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Loop:
    """Calls `tick` again and again; it returns the seconds until it wants to be called next."""

    def __init__(
        self, name: str, tick: Callable[[], Awaitable[float]], telemetry: Telemetry, *, jitter: float = 0.0
    ) -> None:
        self.name = name
        self._tick = tick
        self._telemetry = telemetry
        self._jitter = jitter
        self._woken = asyncio.Event()
        self._stopping = False
        self._troubles = 0

    def wake(self) -> None:
        """Call `tick` now, or at once again if it is under way."""
        self._woken.set()

    def stop(self) -> None:
        """Call `tick` no more."""
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Run until stopped. Raises what ended it."""
        while not self._stopping:
            self._woken.clear()
            pause_s = await self._one()
            if pause_s > 0 and not self._stopping:
                await self._wait(pause_s * random.uniform(1 - self._jitter, 1 + self._jitter))  # noqa: S311

    async def _one(self) -> float:
        try:
            pause_s = await self._tick()
        except Exception as error:
            if not is_trouble(error):
                raise
            return self._meet(error)
        if self._troubles:
            log.info("loop %s goes on after %d failed tries", self.name, self._troubles)
            self._troubles = 0
        return pause_s

    def _meet(self, error: Exception) -> float:
        pause_s = TROUBLE_S[min(self._troubles, len(TROUBLE_S) - 1)]
        self._troubles += 1
        self._telemetry.counters.add("loop_errors")
        self._telemetry.emit(Event.LOOP_ERROR, loop=self.name, error=str(error))
        log.log(
            logging.WARNING if self._troubles in (1, 10, 100) else logging.DEBUG,
            "loop %s met trouble (try %d): %s",
            self.name,
            self._troubles,
            error,
        )
        self._woken.clear()  # a wake-up must not turn trouble into a hot loop
        return pause_s

    async def _wait(self, pause_s: float) -> None:
        timer = asyncio.get_running_loop().call_later(pause_s, self._woken.set)
        await self._woken.wait()
        timer.cancel()
