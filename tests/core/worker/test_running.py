"""Primitives know the attempt that they are used in; chores are done beside the jobs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fencerow.app import App
from fencerow.core.chore import Chore, chore_of
from fencerow.core.store.running import Running, running
from fencerow.core.worker.context import Job
from fencerow.errors import DeclarationError
from tests.core.worker.stage import working
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

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
        await asyncio.wait_for(chore.enough.wait(), PATIENCE_S)
    await app.aclose()


class Least(Chore):
    name = "least"

    async def tick(self) -> float:
        return 1.0


class Remembering:
    """It derives from nothing, and has more than it needs."""

    name = "remembering"
    is_idle = False

    def for_worker(self) -> Least:
        return Least()

    def is_for(self, message: object) -> bool:
        return message is None

    async def tick(self) -> float:
        return 2.0


async def test_what_a_chore_does_not_say_is_as_usual() -> None:
    for chore in (Least(), chore_of(Counting())):
        assert chore.is_idle and not chore.is_for(None) and chore.for_worker() is chore
        await chore.end(1.0)


async def test_what_a_chore_says_counts_though_it_derives_from_nothing() -> None:
    chore = chore_of(Remembering())
    assert (chore.name, chore.is_idle, chore.is_for(None)) == ("remembering", False, True)
    assert (await chore.tick(), type(chore.for_worker())) == (2.0, Least)


@pytest.mark.parametrize("given", [object(), Least, type("Nameless", (), {"tick": Least.tick})()])
def test_what_is_no_chore_is_refused_at_the_door(sqlite_path: Path, given: object) -> None:
    app = App(f"sqlite:///{sqlite_path}")
    with pytest.raises(DeclarationError, match="is no chore"):
        app.add_chore(given)  # type: ignore[arg-type]
