"""A worker of its own process that kills itself before or after a group of its output is written."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from fencerow import Job
from fencerow.db.run import Operation
from tests.core.worker.stage import quick, worker_of
from tests.steps.member import die, opened

SAID = ("first", "second", "third")


async def tells(job: Job) -> None:
    for each in SAID:
        await job.emit(each)


def work(url: str, when: str) -> None:
    """Work until killed: before the second group of an attempt is written, or after that was committed."""
    asyncio.run(_work(url, when))


async def _work(url: str, when: str) -> None:
    engine = opened(url)
    engine.arun = partial(_dying, engine.arun, when)  # type: ignore[method-assign]
    await worker_of(engine, tells, config=quick(output_write_s=10.0)).run()


async def _dying(arun: Any, when: str, operation: Operation[Any]) -> Any:
    is_it = operation.name == "write" and "second" in str(operation.start)
    if is_it and when == "before":
        die()
    answer = await arun(operation)
    if is_it:
        die()
    return answer
