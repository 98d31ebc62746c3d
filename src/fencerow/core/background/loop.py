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
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fencerow.core.background.outage import Outage
from fencerow.core.errors import FencerowError, OutOfResources
from fencerow.core.model.wanted import Failing
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.db.apart import apart
from fencerow.db.errors.base import line_of
from fencerow.db.portion import Portion
from fencerow.db.recent import Recent
from fencerow.db.text import amount, clean, said_of
from fencerow.db.trouble import is_out_of_descriptors, is_shortage, is_trouble, out_of_resources
from fencerow.db.waits import set_within

log = logging.getLogger("fencerow.worker")

STATED_MAX = 200  # characters of an error on the worker's row
TROUBLE_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
FAULT_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # of work in the background, which may need somebody's hand


class Loop:
    """Calls `tick` again and again; it returns the seconds until it wants to be called next.

    `background`: an error of it is no reason to stop the jobs. `endures_s`: how long a loop of the core goes on while
    its process is short of descriptors or threads. `woken`: whoever sets it wakes the loop. `portion`: how much of its
    work it does at once. `stands_apart`: a statement of it may break off when the worker has ended, see `apart`.
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
        woken: asyncio.Event | None = None,
        portion: Portion | None = None,
        stands_apart: bool = False,
    ) -> None:
        self.name = name
        self.stands_apart = stands_apart
        self._tick = tick
        self._telemetry = telemetry
        self._jitter = jitter
        self._background = background
        self._endurance = Endurance(name, math.inf if background else endures_s)
        self._woken = woken or asyncio.Event()
        self._portion = portion
        self._stopped = asyncio.Event()
        self._failures = 0  # in a row
        self._told = False  # whether somebody reads of these failures
        self.outage = Outage()  # shared with the other loops of a worker: the same trouble is told once
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

    def too_large(self) -> str | None:
        """What was too much at once within the last minutes. From any thread."""
        return self._portion.too_large() if self._portion is not None else None

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
            return self._meet(RuntimeError("it was cancelled by code outside of the worker"))
        except (Exception, SystemExit) as error:
            return self._meet(error)
        if self._failures:
            level = logging.INFO if self._told else logging.DEBUG
            tries = amount(self._failures, "failed try", "failed tries")
            log.log(level, "loop %s goes on after %s", self.name, tries)
            self._failures, self.failing, self._told = 0, None, False
            self.outage.over(self)
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
        what = said_of(error)
        self.failing = None if waited_out else Failing(self.name, self._failures, clean(what)[:STATED_MAX])
        self._telemetry.counters.add("loop_errors" if waited_out else "loop_faults")
        self._telemetry.emit(Fact.LOOP_ERROR, loop=self.name, error=line_of(error))
        self._say(error, waited_out)
        self._woken.clear()  # a wake-up must not turn trouble into a hot loop
        return pause_s

    async def _wait(self, pause_s: float) -> None:
        # A wake-up must not turn an error into a hot loop; only the end does not wait for the pause.
        if self.failing is not None:
            await set_within(self._stopped, pause_s)
            return
        timer = asyncio.get_running_loop().call_later(pause_s, self._woken.set)
        await self._woken.wait()
        timer.cancel()

    def _say(self, error: BaseException, waited_out: bool) -> None:
        is_news = self._failures in (1, 10, 100)
        if waited_out:
            kind = error.code if isinstance(error, FencerowError) else type(error).__name__
            is_news = self.outage.met(self, kind) and is_news
            level = logging.WARNING if is_news else logging.DEBUG
            log.log(level, "loop %s met trouble (try %d): %s", self.name, self._failures, error)
        else:
            level = logging.ERROR if is_news or self._failures % 100 == 0 else logging.DEBUG
            text = "%s failed (try %d) and is tried again; jobs go on meanwhile: %s"
            log.log(level, text, self.name, self._failures, error, exc_info=error if is_news else None)
        self._told |= is_news


def _is_asked_to_end() -> bool:
    """Whether somebody cancelled the task of this loop; else the cancel came out of what the tick waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Endurance:
    """How long a loop of the core goes on when its own process is short of something: descriptors, threads, memory.

    The database's trouble is waited out for as long as it lasts: no other process would fare better. A shortage is
    different. A process that leaks descriptors will not mend itself, and a fresh one works at once. So it is waited
    out for `limit_s` seconds; whoever asks counts as failing from the first `met` on.
    """

    def __init__(self, name: str, limit_s: float) -> None:
        self._name = name
        self._limit_s = limit_s
        self._since: float | None = None
        self._last = Recent[str]()

    def recovered(self) -> None:
        """It went well: whatever was short is there again."""
        self._since = None

    def met(self, error: BaseException) -> OutOfResources | None:
        """Note a failure; returns why the process must end, if it has lasted too long and is the process's own."""
        if not (is_shortage(error) or is_out_of_descriptors()):
            self._since = None  # the database's trouble; however long it lasts, it is no shortage
            return None
        now = time.monotonic()
        if self._since is None:
            self._since = now
        self._last.note(clean(f"{self._name}: {said_of(error)}")[:STATED_MAX])
        if now - self._since < self._limit_s:
            return None
        return out_of_resources(f"nothing could be done for {now - self._since:.0f} s", error)

    def shortage(self) -> str | None:
        """The last shortage that it met, while that is worth telling. From any thread."""
        return self._last.told()


class WorkerDied(RuntimeError):
    """A loop of the worker ended by an error; the cause is attached. Let the process end and be restarted."""


class Fatal:
    """Whether the worker died, of what, and whose `with` block has to be told. Used on the event loop only."""

    def __init__(self, worker: str, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[BaseException] = loop.create_future()
        self._worker = worker
        self._owner: asyncio.Task[Any] | None = None
        self._owner_told = False
        self._expected = False
        self.is_sudden = False  # half of the worker is gone, so that nothing is to be waited for

    def happened(self) -> bool:
        return self.future.done()

    def own(self, owner: asyncio.Task[Any] | None) -> None:
        """This task is inside a `with` block of the worker; it is cancelled when the worker dies."""
        self._owner = owner

    def disown(self, error: BaseException | None) -> bool:
        """The `with` block ended by this error; returns whether it was our cancel, which is taken back."""
        owner, self._owner = self._owner, None
        return (
            self._owner_told
            and owner is not None
            and owner.uncancel() == 0
            and isinstance(error, asyncio.CancelledError)
        )

    def expect(self) -> None:
        """The worker stops: nobody's block is cancelled any more."""
        self._expected = True

    def tell(self, error: BaseException | None, where: str = "a slot", *, sudden: bool = True) -> None:
        """Something of the worker ended by this error. If it is not sudden, what runs may end first."""
        if error is None or self.future.done():
            return
        log.critical("%s of worker %s ended by an error", where, self._worker, exc_info=error)
        self.future.set_result(error)
        self.is_sudden = sudden
        if self._owner is not None and not self._expected:
            # Nobody waits for `future` in a `with` block: half a worker must not look alive.
            self._owner_told = self._owner.cancel(f"worker {self._worker} died")

    def rule_out(self) -> None:
        """The worker has ended without dying."""
        if not self.future.done():
            self.future.cancel()

    def raise_reason(self) -> None:
        """Raise WorkerDied if the worker died."""
        if self.future.done() and not self.future.cancelled():
            error = self.future.result()
            raise WorkerDied(f"worker {self._worker} died: {said_of(error)}") from error


class Loops:
    """All loops of a worker, each a task of its own; the worker dies of what ends one. Used on the event loop only."""

    def __init__(self, fatal: Fatal) -> None:
        self.tasks: dict[Loop, asyncio.Task[None]] = {}
        self._fatal = fatal
        self._loops: list[Loop] = []
        self._others: list[Endurance] = []
        self._outage = Outage()
        self._started = self._stopped = False

    def add(self, *loops: Loop) -> None:
        """They run from now on, or from the start on."""
        for loop in loops:
            loop.outage = self._outage
        self._loops += loops
        if self._started and not self._stopped:
            self._run(*loops)

    def watch(self, endurance: Endurance) -> None:
        """Ask this one for shortages too: it waits them out in a thread of its own."""
        self._others.append(endurance)

    def start(self) -> None:
        self._started = True
        self._run(*self._loops)

    def stop(self) -> None:
        """Each ends after the tick that is under way; none begins any more."""
        self._stopped = True
        for loop in self._loops:
            loop.stop()

    def dismiss(self, loop: Loop) -> None:
        """End this one after the tick that is under way, and forget it then."""
        loop.stop()
        task = self.tasks.get(loop)
        if task is None:
            self._loops.remove(loop)
        else:
            task.add_done_callback(lambda _task: self._forget(loop))

    def _forget(self, loop: Loop) -> None:
        del self.tasks[loop]
        self._loops.remove(loop)
        self._outage.over(loop)

    def tasks_of(self, loops: Iterable[Loop]) -> list[asyncio.Task[None]]:
        """The tasks of those that have been started."""
        return [self.tasks[loop] for loop in loops if loop in self.tasks]

    def failing(self) -> tuple[Failing, ...]:
        """Work in the background that fails just now. From any thread."""
        return tuple(loop.failing for loop in tuple(self._loops) if loop.failing is not None)

    def shortage(self) -> str | None:
        """What one of them was short of within the last minutes. From any thread."""
        found = [each.shortage() for each in self._others] + [each.shortage() for each in tuple(self._loops)]
        return next((each for each in found if each is not None), None)

    def too_large(self) -> str | None:
        """What was too much at once for one of them within the last minutes. From any thread."""
        found = [each.too_large() for each in tuple(self._loops)]
        return next((each for each in found if each is not None), None)

    def _run(self, *loops: Loop) -> None:
        for loop in loops:
            make = apart if loop.stands_apart else asyncio.create_task
            self.tasks[loop] = make(self._guarded(loop))
            self.tasks[loop].set_name(f"fencerow-{loop.name}")

    async def _guarded(self, loop: Loop) -> None:
        try:
            await loop.run()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._fatal.tell(error, loop.name)
