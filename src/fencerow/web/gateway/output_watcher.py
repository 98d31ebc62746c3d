"""Who follows the output of jobs over HTTP, and the one task of a process that looks for all of them.

A look is one statement for each 500 jobs: how they stand, and what each has emitted last. What is new, a stream reads
itself, at its reader's pace. While nobody follows there are no looks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from fencerow.app import App
from fencerow.core.db.engine import Engine
from fencerow.output.storing import Emitting, emitting

log = logging.getLogger("fencerow.web")

PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 1.0
PAUSE_GROWTH = 1.5
IDS_MAX = 500


class Tail:
    """What one stream is told of the job whose output it follows."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.job: Emitting | None = None
        self.is_gone = False
        self.changed = asyncio.Event()

    def told(self, job: Emitting | None) -> bool:
        """How the job stands; None if it is nowhere. Says whether that is new."""
        if job is not None and job == self.job:
            return False
        self.job = job or self.job
        self.is_gone = job is None
        self.changed.set()
        return True

    async def news(self, patience_s: float) -> bool:
        """Wait until there is something new; false when there was nothing for so long."""
        try:
            async with asyncio.timeout(patience_s):
                await self.changed.wait()
        except TimeoutError:
            return False
        self.changed.clear()
        return True


class OutputWatcher:
    """The task that looks for all streams of output of one app in this event loop."""

    def __init__(self, engine: Engine) -> None:
        self.loop = asyncio.get_running_loop()
        self._engine = engine
        self._tails: set[Tail] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_in_trouble = False

    @contextmanager
    def following(self, tail: Tail) -> Iterator[None]:
        """Look for it as long as this lasts."""
        self._tails.add(tail)
        self._wake.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="fencerow-output")
        try:
            yield
        finally:
            self._tails.discard(tail)
            self._wake.set()

    async def _run(self) -> None:
        pause_s = PAUSE_MIN_S
        try:
            while self._tails:
                self._wake.clear()
                changed = await self._looked()
                pause_s = PAUSE_MIN_S if changed else min(pause_s * PAUSE_GROWTH, PAUSE_MAX_S)
                try:
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            self._task = None

    async def _looked(self) -> bool:
        """Look once; whatever is met is told to the log, and the next look comes: streams last until they end."""
        by_job: dict[str, list[Tail]] = {}
        for tail in self._tails:
            by_job.setdefault(tail.job_id, []).append(tail)
        changed = False
        try:
            every = list(by_job)
            for at in range(0, len(every), IDS_MAX):
                ids = every[at : at + IDS_MAX]
                found = await self._engine.arun(emitting(ids))
                for job_id in ids:
                    for tail in by_job[job_id]:
                        changed = tail.told(found.get(job_id)) or changed
        except Exception as error:
            if not self._is_in_trouble:
                log.warning("jobs whose output is followed cannot be looked at, trying again: %s", error)
            self._is_in_trouble = True
            return False
        self._is_in_trouble = False
        return changed


_watchers: WeakKeyDictionary[App, OutputWatcher] = WeakKeyDictionary()


def output_watcher_of(app: App) -> OutputWatcher:
    """The watcher of an app in this event loop: one for all gateways that it has here."""
    found = _watchers.get(app)
    if found is None or found.loop is not asyncio.get_running_loop():
        found = _watchers[app] = OutputWatcher(app.engine)
    return found
