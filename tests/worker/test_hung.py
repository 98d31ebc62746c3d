"""Handlers that ignore their end: their worker goes on without them, and leaves when there are too many."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fencerow.errors import TooManyHung
from fencerow.worker.death import WorkerDied
from tests.jobs import AnyEngine
from tests.worker.stage import Stage, quick, read, submit, until, worker_of


async def test_a_worker_with_too_many_hung_handlers_lets_the_others_end_and_leaves(engine: AnyEngine) -> None:
    free, ends = threading.Event(), asyncio.Event()
    asked: list[int] = []

    def hangs() -> None:
        while not free.is_set():
            try:
                free.wait(60)
            except BaseException:
                asked.append(1)

    async def busy() -> str:
        await ends.wait()
        return "done"

    worker = worker_of(engine, hangs, busy, config=quick(hung_max=1, cancel_kill_s=0.2, shutdown_s=30.0))
    stage = Stage(engine, worker)
    running = asyncio.create_task(worker.run())
    other = await submit(engine, "busy")
    hung = [await submit(engine, "hangs", timeout_s=0.1, attempts_max=1) for _ in range(2)]
    for job_id in hung:
        await stage.ended(job_id)
    late = await submit(engine, "busy")
    await until(lambda: worker._stopping, what="the worker's leaving")
    assert not running.done(), "it does not wait for its other jobs"
    ends.set()
    with pytest.raises(WorkerDied) as caught:
        await asyncio.wait_for(running, 15)
    free.set()

    assert isinstance(caught.value.__cause__, TooManyHung)
    assert (await read(engine, other)).result == "done"
    left = await read(engine, late)
    assert (left.state, left.failures, left.crashes) in [("queued", 0, 0), ("succeeded", 0, 0)]


async def test_a_handler_that_ends_after_all_is_hung_no_more(engine: AnyEngine) -> None:
    free = threading.Event()
    asked: list[int] = []

    def hangs() -> None:
        while not free.is_set():
            try:
                free.wait(60)
            except BaseException:
                asked.append(1)

    worker = worker_of(engine, hangs, config=quick(hung_max=1, cancel_kill_s=0.2))
    async with worker:
        stage = Stage(engine, worker)
        await stage.run("hangs", timeout_s=0.1, attempts_max=1)
        assert worker._parts.workplace.hung_count == 1
        free.set()
        await until(lambda: worker._parts.workplace.hung_count == 0, what="its end")
        free.clear()
        await stage.run("hangs", timeout_s=0.1, attempts_max=1)
        assert not worker._parts.death.happened()
        free.set()
