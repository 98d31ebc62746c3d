"""Who follows jobs over HTTP, and the one task of a process that looks for all who follow the same of them.

Looks come less and less often, up to once a second, while nothing changes. While nobody watches there are none. What a
look reads is the caller's: how jobs stand and what they log (`watcher.py`), or what they emit (`output.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from fencerow.app import App
from fencerow.db.engine import Engine
from fencerow.db.run import Operation
from fencerow.db.waits import set_within

log = logging.getLogger("fencerow.web")

PAUSE_MIN_S = 0.25
PAUSE_MAX_S = 1.0
PAUSE_GROWTH = 1.5
AGAIN_S = 0.05  # between looks that newcomers and much that is new ask for
IDS_MAX = 500

T = TypeVar("T")


class Standing(Protocol):
    """What a look says of a job, at least."""

    @property
    def queue(self) -> str: ...


S = TypeVar("S", bound=Standing)


class Watch(Generic[S]):
    """What one stream is told of its job: the newest look."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.look: S | None = None
        self.is_gone = False
        self.changed = asyncio.Event()

    def told(self, look: S | None) -> bool:
        """How the job stands; None if it is nowhere. Says whether that is new."""
        if look is not None and look == self.look:
            return False
        self.look = look or self.look
        self.is_gone = look is None
        self.changed.set()
        return True

    async def news(self, patience_s: float) -> bool:
        """Wait until there is something new; false when there was nothing for so long."""
        if not await set_within(self.changed, patience_s):
            return False
        self.changed.clear()
        return True


W = TypeVar("W", bound=Watch[Any])


class Watching(Generic[W]):
    """The task that looks for all streams of one kind, of one app in this event loop.

    `look` reads what is new for all of them, tells each, and says whether anything was. `what` names it in the log.
    """

    def __init__(
        self,
        engine: Engine,
        look: Callable[[Engine, Collection[W]], Awaitable[bool]],
        what: str,
        pause_min_s: float = PAUSE_MIN_S,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._engine = engine
        self._look = look
        self._what = what
        self._pause_min_s = pause_min_s
        self._watches: set[W] = set()
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
    def watching(self, watch: W) -> Iterator[None]:
        """Look for it as long as this lasts."""
        self._watches.add(watch)
        self.hurry()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="fencerow-watching")
        try:
            yield
        finally:
            self._watches.discard(watch)
            self.hurry()

    def hurry(self) -> None:
        """Look again at once: there is more to read, somebody came, or nobody is left."""
        self._wake.set()

    async def _run(self) -> None:
        pause_s = self._pause_min_s
        try:
            while self._watches:
                self._wake.clear()
                changed = await self._looked()
                pause_s = self._pause_min_s if changed else min(pause_s * PAUSE_GROWTH, PAUSE_MAX_S)
                await self._rest(pause_s)
        finally:
            self._task = None

    async def _rest(self, pause_s: float) -> None:
        await asyncio.sleep(AGAIN_S if self._watches else 0)
        await set_within(self._wake, pause_s - AGAIN_S)

    async def _looked(self) -> bool:
        """Look once; whatever is met is told to the log, and the next look comes: streams last until they end."""
        try:
            changed = await self._look(self._engine, list(self._watches))
        except Exception as error:
            if not self._is_in_trouble:
                log.warning("%s cannot be looked at, trying again: %s", self._what, error)
            self._is_in_trouble = True
            return False
        self._is_in_trouble = False
        return changed


class WatchingByApp(Generic[W]):
    """One `Watching` for each app, for all gateways that it has in this event loop."""

    def __init__(self, make: Callable[[Engine], Watching[W]]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[App, Watching[W]] = WeakKeyDictionary()

    def of(self, app: App) -> Watching[W]:
        """The one of this app in this event loop."""
        found = self._made.get(app)
        if found is None or found.loop is not asyncio.get_running_loop():
            found = self._made[app] = self._make(app.engine)
        return found


async def tell_standing(
    engine: Engine, watches: Iterable[Watch[S]], standing: Callable[[Sequence[str]], Operation[dict[str, S]]]
) -> bool:
    """Tell each how its job stands, with one statement for each 500 jobs. Says whether anything is new."""
    by_job: dict[str, list[Watch[S]]] = {}
    for watch in watches:
        by_job.setdefault(watch.job_id, []).append(watch)
    changed = False
    for ids in in_parts(list(by_job), IDS_MAX):
        found = await engine.arun(standing(ids))
        for job_id in ids:
            for watch in by_job[job_id]:
                changed = watch.told(found.get(job_id)) or changed
    return changed


def in_parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in their order, so many at a time."""
    return (items[at : at + size] for at in range(0, len(items), size))
