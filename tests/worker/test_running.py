"""Primitives know the attempt that they are used in; chores are done beside the jobs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fencerow.app import App
from fencerow.core.store.running import Running, running
from fencerow.core.worker.context import Job
from tests.jobs import AnyEngine
from tests.worker.stage import working

SEEN: list[tuple[Running | None, Job]] = []


async def asking(job: Job) -> None:
    SEEN.append((running.get(), job))


def asking_plainly(job: Job) -> None:
    SEEN.append((running.get(), job))


@pytest.mark.parametrize("handler", [asking, asking_plainly])
async def test_code_of_a_handler_knows_its_attempt(engine: AnyEngine, handler: object) -> None:
    SEEN.clear()
    async with working(engine, handler) as stage:  # type: ignore[arg-type]
        await stage.run(handler.__name__)  # type: ignore[attr-defined]

    ((found, job),) = SEEN
    assert found is not None and running.get() is None
    assert (found.job_id, found.holder, found.attempt) == (job.id, job.holder, 1)
    assert await engine.arun(found.still_held()) is None, "the job has ended"


@dataclass
class Counting:
    name: str = "counting"
    ticks: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def tick(self) -> float:
        self.ticks += 1
        if self.ticks == 3:
            self.enough.set()
        return 0.01


async def test_a_worker_does_the_chores_of_its_app(sqlite_path: Path) -> None:
    app = App(f"sqlite:///{sqlite_path}")

    @app.job
    async def nothing() -> None: ...

    chore = Counting()
    app.add_chore(chore)
    async with app.worker():
        await asyncio.wait_for(chore.enough.wait(), 10)
    await app.aclose()
