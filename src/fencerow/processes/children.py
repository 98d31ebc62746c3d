"""The child processes of a worker: started when wanted, lent to one attempt at a time, kept warm, replaced."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fencerow.core.config import CoreConfig
from fencerow.core.errors import Busy
from fencerow.db.text import said_of
from fencerow.processes.child import Child
from fencerow.processes.settings import ChildSettings
from fencerow.processes.starting import Starter
from fencerow.processes.wire import Start

log = logging.getLogger("fencerow.worker")

LEAVE_S = 2.0
CLOSE_S = 10.0
LOOK_S = 0.05
LINGER_S = 1.0  # for one that is over `child_idle_max`: where several end at once, the next job is seldom far


class Children:
    """Lends processes to attempts. There are never more than slots, and `child_idle_max` that do nothing for long."""

    def __init__(self, config: CoreConfig, held_max_s: float | None) -> None:
        self._config = config
        self._kept = ChildSettings.of(config)
        self._held_max_s = held_max_s
        self._starter = Starter()
        self._idle: list[Child] = []
        self._all: set[Child] = set()
        self._timers: dict[Child, asyncio.TimerHandle] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def pids(self) -> list[int]:
        """The wardens of the processes that are there now."""
        return [child.pid for child in self._all]

    async def lend(self, memory_bytes_max: int | None, unwanted: Callable[[], bool]) -> Child | None:
        """A process under this memory limit; None when it is `unwanted` before it has started.

        Raises:
            Busy: none could be started.
        """
        for child in reversed(self._idle):
            if child.memory_bytes_max == memory_bytes_max and not child.gone.done():
                self._idle.remove(child)
                self._timers.pop(child).cancel()
                return child
        return await self._fresh(memory_bytes_max, unwanted)

    def give_back(self, child: Child) -> None:
        """The attempt is over. The process stays for the next one, unless it has grown old or fat."""
        kept = self._kept
        worn = child.jobs >= kept.child_jobs_max or child.resident_bytes > kept.child_resident_bytes_max
        if worn or kept.child_idle_max == 0:
            self._send_off(child)
            return
        enough = len(self._idle) >= kept.child_idle_max
        stays_s = min(LINGER_S, kept.child_idle_s) if enough else kept.child_idle_s
        self._idle.append(child)
        loop = asyncio.get_running_loop()
        self._timers[child] = loop.call_later(stays_s, self._send_off, child)

    async def close(self) -> None:
        """End all of them, and wait until nothing is left."""
        for child in list(self._idle):
            self._send_off(child)
        for child in self._all:
            if child not in self._idle:
                child.kill()
        gone: set[asyncio.Future[Any]] = {*self._leaving, *(child.gone for child in self._all)}
        if gone and (await asyncio.wait(gone, timeout=CLOSE_S))[1]:
            log.error("child processes %s do not die; the system holds them", self.pids)
        await asyncio.to_thread(self._starter.close)

    async def _fresh(self, memory_bytes_max: int | None, unwanted: Callable[[], bool]) -> Child | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.child_start_s
        try:
            started = await self._starter.start()
        except (OSError, RuntimeError) as error:
            raise _not_started(said_of(error)) from error
        try:
            child = Child(started, memory_bytes_max)
        except RuntimeError as error:  # no thread is left to wait for its death
            started.give_up()
            raise _not_started(str(error)) from error
        self._all.add(child)
        child.gone.add_done_callback(lambda _: self._forget(child))
        await child.connect(started.connection, self._start(memory_bytes_max))
        while not child.started.done() and not unwanted() and loop.time() < deadline:
            await asyncio.wait({child.started}, timeout=LOOK_S)
        if child.started.done() and child.started.result():
            return child
        child.kill()
        if unwanted():
            return None
        if not child.started.done():
            raise _not_started(f"it was not ready after {self._config.child_start_s:g} s")
        await asyncio.shield(child.gone)
        raise _not_started(child.last_words())

    def _start(self, memory_bytes_max: int | None) -> Start:
        loggers = logging.root.manager.loggerDict
        levels = {name: each.level for name, each in loggers.items() if isinstance(each, logging.Logger)}
        return Start(
            path=[str(each) for each in sys.path],
            argv=[str(each) for each in sys.argv],
            memory_bytes_max=memory_bytes_max,
            config=asdict(self._config),
            levels={"": logging.root.level, **{name: level for name, level in levels.items() if level}},
            held_max_s=self._held_max_s,
        )

    def _send_off(self, child: Child) -> None:
        if child in self._idle:
            self._idle.remove(child)
            self._timers.pop(child).cancel()
        task = asyncio.create_task(child.leave(LEAVE_S), name="fencerow-child")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def _forget(self, child: Child) -> None:
        self._all.discard(child)
        if child in self._idle:
            self._idle.remove(child)
            self._timers.pop(child).cancel()


def _not_started(why: str) -> Busy:
    return Busy(
        f"no child process could be started: {why}"[:500],
        "the attempt needs one, and was not begun",
        "look for the limits of this host: memory, processes, open files",
    )
