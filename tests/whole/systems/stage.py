"""What the scenarios need around a rebuilt system: its database, its processes, its clock."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest

from fencerow import App, Handle, State
from fencerow.core.model.job import Happening, JobRecord
from fencerow.core.model.wakeup import Queued, encode
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.kit.command import Command
from tests.kit.pace import PATIENCE_S
from tests.kit.plainly import plainly
from tests.kit.stopping import is_locked, is_stopped
from tests.whole.systems.outside import until

ROOT = Path(__file__).parents[3]
# Only to be quick; what a scenario is about is set by the scenario.
QUICK = {"poll_min_s": 0.01, "poll_max_s": 0.05, "sweep_s": 0.1, "cancel_raise_s": 0.1}
# For a worker that stays while the clock jumps: its lease is longer than each jump.
STEADY = {"lease_s": 3600.0}


class Stage:
    """One system on one database, opened as a process of its own would: from the environment."""

    def __init__(self, system: ModuleType, url: str, patch: pytest.MonkeyPatch) -> None:
        self._system = system
        self._patch = patch
        patch.setenv("FENCEROW_URL", url)

    async def open(self, **settings: float | str) -> None:
        """Load the system's module anew, with these settings."""
        await self.close()
        for name, value in {**QUICK, **settings}.items():
            self._patch.setenv(f"FENCEROW_{name.upper()}", str(value))
        importlib.reload(self._system)
        self.app.check_or_create()
        self.heard: list[str] = []  # the events that this process told
        self.app.telemetry.listen(lambda name, _facts: self.heard.append(name))
        engine = self.app.engine
        assert isinstance(engine, SqliteEngine | PostgresEngine)
        self.clock: DatabaseClock = clock_of(engine)

    async def close(self) -> None:
        await self.app.aclose()

    @property
    def app(self) -> App:
        app: App = self._system.app
        return app

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """A connection of the user's own to the same database; leaving commits, an error rolls back."""
        engine = self.app.engine
        if isinstance(engine, PostgresEngine):
            with psycopg.connect(engine.conninfo) as db:
                yield db
            return
        assert isinstance(engine, SqliteEngine)
        with closing(sqlite3.connect(engine.path)) as lite, lite:
            yield lite

    # --- time --------------------------------------------------------------------------------------

    def now_us(self) -> int:
        return self.app.engine.run(store.clock())

    def pass_time(self, seconds: float) -> None:
        """Let it pass at once, for this process and, on PostgreSQL, for all; workers look again."""
        self.clock.advance(seconds)
        self.app.engine.wake([encode(Queued(job.queue, 0, 0)) for job in self.app.jobs.values()])

    def pass_until(self, instant_us: int) -> None:
        """Go to this instant, or stay when it has passed."""
        missing_us = instant_us - self.now_us()
        if missing_us > 0:
            self.pass_time(missing_us / 1e6 + 0.001)

    # --- workers -----------------------------------------------------------------------------------

    async def work(self) -> None:
        """A worker runs what is due, and goes."""
        async with asyncio.timeout(PATIENCE_S):
            await self.app.worker().run(until_idle=True)

    async def attempted(self, handle: Handle[Any], attempt: int) -> JobRecord:
        """Wait until a worker is through with this attempt of the job; returns what has become of the job."""

        async def over() -> bool:
            job = await handle.arefresh()
            return job.attempt >= attempt and job.state is not State.RUNNING

        await until(over, f"attempt {attempt}")
        return await handle.arefresh()

    def happenings(self, handle: Handle[Any], kind: str) -> list[Happening]:
        """The lines of this kind in the job's timeline."""
        return [each for each in plainly(self.app.client.timeline, handle.id) if each.kind == kind]

    def delay_s(self, handle: Handle[Any], kind: str) -> float:
        """From the last happening of this kind to when the job is due."""
        return (plainly(handle.refresh).run_at_us - self.happenings(handle, kind)[-1].at_us) / 1e6

    def process(self, log: Path, **settings: float | str) -> AbstractContextManager[Command]:
        """A worker process of the system, killed in the end if it still lives."""
        return self.command(log, "worker", **settings)

    @contextmanager
    def command(self, log: Path, *words: str, **settings: float | str) -> Iterator[Command]:
        """A command of the system that goes on until it is stopped; killed in the end if it still lives."""
        wanted = {f"FENCEROW_{name.upper()}": str(value) for name, value in {**QUICK, **settings}.items()}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **wanted}
        name, *options = words
        with Command([name, "-A", f"{self._system.__name__}:app", *options], environment, log) as running:
            try:
                yield running
            finally:
                running.kill()

    async def freeze(self, process: Command) -> None:
        """Let a process stand still, where it holds no lock of the file: with one it would stop all others, too."""

        def frozen() -> bool:
            process.send_signal(signal.SIGSTOP)
            if not is_stopped(process.pid):
                return False  # a signal takes its time: asked once more
            if self._is_free():
                return True
            process.send_signal(signal.SIGCONT)
            return False

        await until(frozen, "a moment without a lock")

    def _is_free(self) -> bool:
        engine = self.app.engine
        return not (isinstance(engine, SqliteEngine) and is_locked(engine.path))

    def living_workers(self) -> list[WorkerRecord]:
        """Those that are registered and not known to be dead."""
        return self.app.engine.run(store.list_workers(state="alive"))

    def age_s(self, holder: str | None) -> float:
        """Since when a living worker is registered; 0 for one that is not."""
        ages = [each.now_us - each.registered_at_us for each in self.living_workers() if each.id == holder]
        return ages[0] / 1e6 if ages else 0.0
