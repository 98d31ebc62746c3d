"""Who watches jobs over HTTP, and the one task of a process that looks for all of them.

A look is one statement for each 500 jobs, and one for each 20 streams that have new lines to read. Looks come every
quarter of a second, and less and less often, up to once a second, while nothing changes. While nobody watches there are
none. A stream holds the newest look and one page of lines; a slow reader's lines wait in the database.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import TypeVar
from weakref import WeakKeyDictionary

from fencerow.app import App
from fencerow.core.db.engine import Engine
from fencerow.core.model.state import State
from fencerow.operators.watching import KeptLine, WatchedJob, lines_after, watched

log = logging.getLogger("fencerow.web")

PAUSE_MIN_S = 0.25
PAUSE_MAX_S = 1.0
PAUSE_GROWTH = 1.5
AGAIN_S = 0.05  # between looks that newcomers and long logs ask for
IDS_MAX = 500
READERS_MAX = 20
LINES_MAX = 50
# Two lines that an attempt writes at once may become visible in the other order. So the lines of a running attempt are
# told when they are so old: the place of the last one told is then a place below which nothing comes any more.
SETTLED_US = 500_000

T = TypeVar("T")


class Watch:
    """What one stream is told of a job: the newest look, and lines that it has not taken yet."""

    def __init__(self, job_id: str, position: int) -> None:
        self.job_id = job_id
        self.position = position  # the last line that was handed over
        self.look: WatchedJob | None = None
        self.is_gone = False
        self.changed = asyncio.Event()
        self._lines: Sequence[KeptLine] = ()

    @property
    def wants_lines(self) -> bool:
        """Whether there are lines to read, and room for them."""
        return self.look is not None and not self._lines and self.position < self.look.last_line

    def take(self) -> Sequence[KeptLine]:
        """The lines that came since the last call."""
        taken, self._lines = self._lines, ()
        return taken

    def told(self, look: WatchedJob | None) -> bool:
        """How the job stands; None if it is nowhere. Says whether that is new."""
        if look is not None and look == self.look:
            return False
        self.look = look or self.look
        self.is_gone = look is None
        self.changed.set()
        return True

    def given(self, lines: Sequence[KeptLine]) -> bool:
        """The lines after its position. Says whether there were any, also such that are told at a later look."""
        self._lines = list(takewhile(self._is_settled, lines))
        if self._lines:
            self.position = self._lines[-1].id
            self.changed.set()
        return bool(lines)

    def _is_settled(self, line: KeptLine) -> bool:
        """Whether no line can come before it any more: its attempt has ended, or it is old enough."""
        look = self.look
        if look is not None and (
            line.attempt < look.attempt or (line.attempt == look.attempt and look.state is not State.RUNNING)
        ):
            return True
        return line.now_us - line.at_us >= SETTLED_US

    async def news(self, patience_s: float) -> bool:
        """Wait until there is something new; false when there was nothing for so long."""
        try:
            async with asyncio.timeout(patience_s):
                await self.changed.wait()
        except TimeoutError:
            return False
        self.changed.clear()
        return True


class Watcher:
    """The task that looks for all streams of one app in this event loop."""

    def __init__(self, engine: Engine) -> None:
        self.loop = asyncio.get_running_loop()
        self._engine = engine
        self._watches: set[Watch] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_in_trouble = False

    @property
    def count(self) -> int:
        """How many watch now."""
        return len(self._watches)

    @property
    def is_looking(self) -> bool:
        """Whether the task is there."""
        return self._task is not None

    @contextmanager
    def watching(self, watch: Watch) -> Iterator[None]:
        """Look for it as long as this lasts."""
        self._watches.add(watch)
        self.hurry()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="fencerow-watcher")
        try:
            yield
        finally:
            self._watches.discard(watch)
            self.hurry()

    def hurry(self) -> None:
        """Look again at once: there is more to read, somebody came, or nobody is left."""
        self._wake.set()

    async def _run(self) -> None:
        pause_s = PAUSE_MIN_S
        try:
            while self._watches:
                self._wake.clear()
                changed = await self._looked()
                pause_s = PAUSE_MIN_S if changed else min(pause_s * PAUSE_GROWTH, PAUSE_MAX_S)
                await self._rest(pause_s)
        finally:
            self._task = None

    async def _rest(self, pause_s: float) -> None:
        await asyncio.sleep(AGAIN_S if self._watches else 0)
        try:
            async with asyncio.timeout(pause_s - AGAIN_S):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _looked(self) -> bool:
        """Look once; whatever is met is told to the log, and the next look comes: streams last until they end."""
        try:
            changed = await self._look()
        except Exception as error:
            if not self._is_in_trouble:
                log.warning("jobs that are watched cannot be looked at, trying again: %s", error)
            self._is_in_trouble = True
            return False
        self._is_in_trouble = False
        return changed

    async def _look(self) -> bool:
        by_job: dict[str, list[Watch]] = {}
        for watch in self._watches:
            by_job.setdefault(watch.job_id, []).append(watch)
        changed = False
        for ids in _parts(list(by_job), IDS_MAX):
            found = await self._engine.arun(watched(ids))
            for job_id in ids:
                for watch in by_job[job_id]:
                    changed = watch.told(found.get(job_id)) or changed
        readers = [watch for watch in self._watches if watch.wants_lines]
        for some in _parts(readers, READERS_MAX):
            asked = [(watch.job_id, watch.position) for watch in some]
            pages = await self._engine.arun(lines_after(asked, limit=LINES_MAX))
            for watch, lines in zip(some, pages, strict=True):
                changed = watch.given(lines) or changed
        return changed


def _parts(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[at : at + size] for at in range(0, len(items), size))


_watchers: WeakKeyDictionary[App, Watcher] = WeakKeyDictionary()


def watcher_of(app: App) -> Watcher:
    """The watcher of an app in this event loop: one for all gateways that it has here."""
    found = _watchers.get(app)
    if found is None or found.loop is not asyncio.get_running_loop():
        found = _watchers[app] = Watcher(app.engine)
    return found
