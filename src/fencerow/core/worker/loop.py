"""A loop of the worker, written once: tick, wait, wake, meet trouble, stop.

Database trouble is waited out with a growing pause. Any other error ends a loop of the core, and a core without
one of its loops takes the worker down with its reason: half a worker looks alive and does nothing. Work in the
background is beside the jobs: its errors are logged, counted and stated on the worker's row, and it is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable

from fencerow.core.db.trouble import is_shortage, is_trouble
from fencerow.core.model.wanted import Failing
from fencerow.core.telemetry import Event, Telemetry, clean
from fencerow.core.worker.endurance import TOLD_MAX, Endurance

log = logging.getLogger("fencerow.worker")

TROUBLE_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
FAULT_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # of work in the background, which may need somebody's hand


class Loop:
    """Calls `tick` again and again; it returns the seconds until it wants to be called next.

    `background`: an error of it is no reason to stop the jobs. `endures_s`: how long a loop of the core goes on while
    its process is short of descriptors or threads.
    """

    def __init__(
        self,
        name: str,
        tick: Callable[[], Awaitable[float]],
        telemetry: Telemetry,
        *,
        jitter: float = 0.0,
        background: bool = False,
        endures_s: float = math.inf,
    ) -> None:
        self.name = name
        self._tick = tick
        self._telemetry = telemetry
        self._jitter = jitter
        self._background = background
        self._endurance = Endurance(name, math.inf if background else endures_s)
        self._woken = asyncio.Event()
        self._stopped = asyncio.Event()
        self._failures = 0  # in a row
        self.failing: Failing | None = None  # work in the background that met an error of its own

    def wake(self) -> None:
        """Call `tick` now, or at once again if it is under way. After an error of its own its pause is kept."""
        self._woken.set()

    def stop(self) -> None:
        """Call `tick` no more."""
        self._stopped.set()
        self._woken.set()

    def shortage(self) -> str | None:
        """What it was short of within the last minutes. From any thread."""
        return self._endurance.shortage()

    async def run(self) -> None:
        """Run until stopped. Raises what ended it."""
        while not self._stopped.is_set():
            self._woken.clear()
            pause_s = await self._one()
            if pause_s > 0 and not self._stopped.is_set():
                await self._wait(pause_s * random.uniform(1 - self._jitter, 1 + self._jitter))  # noqa: S311

    async def _one(self) -> float:
        try:
            pause_s = await self._tick()
        except asyncio.CancelledError:
            if _is_asked_to_end():
                raise
            return self._meet(RuntimeError("it met a cancel that nobody here had asked for"))
        except (Exception, SystemExit) as error:
            return self._meet(error)
        if self._failures:
            log.info("loop %s goes on after %d failed tries", self.name, self._failures)
            self._failures, self.failing = 0, None
            self._endurance.recovered()
        return pause_s

    def _meet(self, error: BaseException) -> float:
        """Count an error and return the pause after it. Raises it where the worker cannot do without the loop."""
        waited_out = is_trouble(error) or is_shortage(error)
        if not waited_out and not self._background:
            raise error
        if (spent := self._endurance.met(error)) is not None:
            raise spent from error
        pauses = TROUBLE_S if waited_out else FAULT_S
        pause_s = pauses[min(self._failures, len(pauses) - 1)]
        self._failures += 1
        told = f"{type(error).__name__}: {error}"
        self.failing = None if waited_out else Failing(self.name, self._failures, clean(told)[:TOLD_MAX])
        self._telemetry.counters.add("loop_errors" if waited_out else "loop_faults")
        self._telemetry.emit(Event.LOOP_ERROR, loop=self.name, error=str(error))
        self._say(error, waited_out)
        self._woken.clear()  # a wake-up must not turn trouble into a hot loop
        return pause_s

    async def _wait(self, pause_s: float) -> None:
        # A wake-up must not turn an error into a hot loop; only the end does not wait for the pause.
        if self.failing is not None:
            try:
                async with asyncio.timeout(pause_s):
                    await self._stopped.wait()
            except TimeoutError:
                pass
            return
        timer = asyncio.get_running_loop().call_later(pause_s, self._woken.set)
        await self._woken.wait()
        timer.cancel()

    def _say(self, error: BaseException, waited_out: bool) -> None:
        is_news = self._failures in (1, 10, 100)
        if waited_out:
            level = logging.WARNING if is_news else logging.DEBUG
            log.log(level, "loop %s met trouble (try %d): %s", self.name, self._failures, error)
        else:
            level = logging.ERROR if is_news or self._failures % 100 == 0 else logging.DEBUG
            told = "%s failed (try %d) and is tried again; jobs go on meanwhile: %s"
            log.log(level, told, self.name, self._failures, error, exc_info=error if is_news else None)


def _is_asked_to_end() -> bool:
    """Whether somebody cancelled the task of this loop; else the cancel came out of what the tick waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
