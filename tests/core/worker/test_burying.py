"""The reaper buries nobody for a lease from before the clock went back whom it has not watched for a whole lease."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fencerow.core.background import reaper as module
from fencerow.core.background.reaper import JobReaper, Warrant
from fencerow.core.model.state import WorkerState
from fencerow.core.store import store
from fencerow.core.store.attempts import Requeued
from fencerow.core.telemetry import Telemetry
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import quick
from tests.kit.jobs import LATE_US, AnyEngine, register


class Judge:
    """The lease of a worker that may judge, or may not."""

    def __init__(self, holder: str) -> None:
        self.holder, self.may = holder, True

    def warrant(self) -> Warrant | None:
        return Warrant(self.holder, LATE_US) if self.may else None


class Nobody:
    """Nobody is told what a sweep has brought about."""

    def announce_queued(self, jobs: Sequence[Requeued]) -> None: ...

    def announce_ended(self, ids: list[str]) -> None: ...


class Scene:
    """A worker whose lease of 30 s was written before the clock went back, and the reaper of another."""

    def __init__(self, engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine, self.now = engine, 1000.0
        self.other = register(engine)
        clock.advance(-3600)
        self.judge = Judge(register(engine, lease_s=1e6))
        monkeypatch.setattr(module, "steady", lambda: self.now)
        self.reaper = JobReaper(engine, self.judge, quick(), Telemetry(), Nobody(), actor="a test")

    async def sweeps(self, *seconds: float) -> list[bool]:
        """A sweep at each of these seconds; whether the other worker is alive after it."""
        found = []
        for each in seconds:
            self.now = 1000.0 + each
            await self.reaper.tick()
            alive = await self.engine.arun(store.list_workers(state=WorkerState.ALIVE.value))
            found.append(self.other in {row.id for row in alive})
        return found


async def test_it_is_buried_after_a_whole_lease_of_silence(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(engine, clock, monkeypatch)

    assert await scene.sweeps(0, 29.9, 30.1) == [True, True, False]


async def test_one_that_renews_is_not_buried(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(engine, clock, monkeypatch)
    assert await scene.sweeps(0) == [True]
    await engine.arun(store.renew(holder=scene.other))

    assert await scene.sweeps(29.9, 30.1, 100) == [True, True, True]


async def test_a_judge_that_had_a_gap_watches_anew(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(engine, clock, monkeypatch)
    assert await scene.sweeps(0) == [True]
    scene.judge.may = False
    assert await scene.sweeps(20) == [True]
    scene.judge.may = True

    assert await scene.sweeps(31, 60, 61.1) == [True, True, False]
