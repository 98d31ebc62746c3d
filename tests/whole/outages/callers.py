"""Callers who submit all the time, do as an error tells them, and write down what they were promised."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fencerow import FencerowError, JobNotFound, Unavailable
from fencerow.core.model.job import JobRecord
from tests.kit.pace import PATIENCE_S
from tests.whole.outages.shop import Shop

SYNC, ASYNC = 2, 4


class Callers:
    """Threads and tasks on one shop. Every submit has a number of its own, by which its job is found again."""

    def __init__(self, shop: Shop, pause_s: float = 0.01) -> None:
        self.shop = shop
        self._pause_s = pause_s
        self._numbers = itertools.count(1)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self.accepted: dict[int, str] = {}  # number: job id
        self.refused: dict[int, str] = {}  # told "yes": nothing was stored, the call may be repeated
        self.doubtful: dict[int, str] = {}  # told "ask": number and the id to ask for
        self.asked = 0  # how many of the doubts were settled by asking
        self.errors: Counter[str] = Counter()
        self.wrong: list[str] = []  # errors that tell a caller nothing of use
        self._threads: list[threading.Thread] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def accepted_more(self, count: int) -> None:
        """Wait until so many more submits were accepted."""
        wanted = len(self.accepted) + count
        await until(lambda: len(self.accepted) >= wanted, f"{count} more submits are accepted")

    async def _asked(self, job_id: str) -> JobRecord:
        """The answer of a database that may have come back only now."""
        while True:
            try:
                return await self.shop.app.client.aget(job_id)
            except Unavailable as error:
                if error.repeat != "yes":
                    raise
                await asyncio.sleep(0.1)

    async def settle_doubts(self) -> None:
        """Ask for every id that was in doubt, as the error says."""
        self.asked += len(self.doubtful)
        for number, job_id in self.doubtful.items():
            try:
                job = await self._asked(job_id)
            except JobNotFound:
                self.refused[number] = "asked"
                continue
            assert job.args == {"n": number}, f"the id that was named for {number} is of {job.args}"
            self.accepted[number] = job_id
        self.doubtful.clear()

    # --- at work -----------------------------------------------------------------------------------

    def call(self) -> None:
        """A thread's work; every other submit has an idempotency key."""
        for turn in itertools.count():
            if self._stopping.is_set():
                return
            number, job = self._next()
            keyed = job.using(key=f"number {number}") if turn % 2 else job
            try:
                self.accepted[number] = keyed.submit(number).id
            except Exception as error:
                self._meet(number, error)
            time.sleep(self._pause_s)

    async def acall(self) -> None:
        """A task's work: single submits, which share their inserts with the other tasks'."""
        while not self._stopping.is_set():
            number, job = self._next()
            try:
                self.accepted[number] = (await job.asubmit(number)).id
            except Exception as error:
                self._meet(number, error)
            await asyncio.sleep(self._pause_s)

    def start(self, tasks: int) -> None:
        self._threads = [threading.Thread(target=self.call, name="caller", daemon=True) for _ in range(SYNC)]
        for thread in self._threads:
            thread.start()
        self._tasks = [asyncio.create_task(self.acall()) for _ in range(tasks)]

    async def stop(self) -> None:
        """Wait until nobody submits any more: a submit under way is stored before its caller knows."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _next(self) -> tuple[int, Any]:
        with self._lock:
            return next(self._numbers), next(self.shop.jobs)

    def _meet(self, number: int, error: Exception) -> None:
        self.errors[type(error).__name__] += 1
        repeat = getattr(error, "repeat", None)
        if repeat == "yes":
            self.refused[number] = str(error)
            return
        ids: tuple[str, ...] = getattr(error, "job_ids", ())
        if repeat == "ask" and len(ids) == 1:
            self.doubtful[number] = ids[0]
            return
        self.wrong.append(f"{number}: {type(error).__name__} repeat={repeat} ids={len(ids)}: {error}"[:600])
        assert isinstance(error, FencerowError), error


@asynccontextmanager
async def calling(shop: Shop, pause_s: float = 0.01, tasks: int = ASYNC) -> AsyncIterator[Callers]:
    """Callers that go on until the block ends."""
    callers = Callers(shop, pause_s)
    callers.start(tasks)
    try:
        yield callers
    finally:
        await callers.stop()


async def until(done: Any, what: str, within_s: float = PATIENCE_S) -> None:
    """Wait for something that no event tells."""
    deadline = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.01)
