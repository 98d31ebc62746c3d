"""A worker of its own process that kills itself before or after a step is remembered."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

from fencerow import Job
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from tests.core.worker.stage import worker_of
from tests.kit.jobs import AnyEngine

STEPS = ("charge", "pack", "ship")


async def effect(folder: str, name: str) -> str:
    """Leaves a line for each call."""
    await asyncio.to_thread(leave, Path(folder, name))
    return name


def leave(place: Path) -> None:
    with place.open("a") as file:
        file.write("x")


async def order(job: Job, folder: str) -> list[str]:
    return [await job.step(name, effect, folder, name) for name in STEPS]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def work(url: str, folder: str, when: str, step: str) -> None:
    """Work until killed: before the memory of this step is written, or after that was committed."""
    asyncio.run(_work(url, folder, when, step))


async def _work(url: str, folder: str, when: str, step: str) -> None:
    engine = opened(url)
    engine.arun = partial(_dying, engine.arun, when, step)  # type: ignore[method-assign]
    await worker_of(engine, order).run()


async def _dying(arun: Any, when: str, step: str, operation: Operation[Any]) -> Any:
    is_it = operation.name == "remember" and f"name='{step}'" in str(operation.start)
    if is_it and when == "before":
        die()
    answer = await arun(operation)
    if is_it:
        die()
    return answer


def opened(url: str) -> AnyEngine:
    if Path(url).is_absolute():
        return SqliteEngine(url, store.sqlite_queries())
    return PostgresEngine(url, store.postgres_queries())
