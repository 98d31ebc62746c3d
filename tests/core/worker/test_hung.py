"""Handlers that ignore their end: their worker goes on without them, and leaves when there are too many."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from fencerow.core.background.loop import WorkerDied
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.context import Job
from fencerow.core.worker.dispatch import Dispatch
from fencerow.errors import TooManyHung
from tests.core.worker.stage import Stage, handler, quick, read, submit, until, worker_of, working
from tests.core.worker.test_parts import claimed, noop
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S


async def test_a_worker_with_too_many_hung_handlers_lets_the_others_end_and_leaves(engine: AnyEngine) -> None:
    free, ends = threading.Event(), asyncio.Event()
    asked: list[int] = []

    def hangs() -> None:
        while not free.is_set():
            try:
                free.wait(PATIENCE_S)
            except BaseException:
                asked.append(1)

    async def busy() -> str:
        await ends.wait()
        return "done"

    worker = worker_of(
        engine, hangs, busy, config=quick(hung_max=1, cancel_kill_s=0.2, shutdown_s=4 * PATIENCE_S)
    )
    stage = Stage(engine, worker)
    running = asyncio.create_task(worker.run())
    other = await submit(engine, "busy")
    hung = [await submit(engine, "hangs", timeout_s=0.1, attempts_max=1) for _ in range(2)]
    for job_id in hung:
        await stage.ended(job_id)
    late = await submit(engine, "busy")
    await until(lambda: worker._parts.life.leaving, what="the worker's leaving")
    assert not running.done(), "it does not wait for its other jobs"
    ends.set()
    with pytest.raises(WorkerDied) as caught:
        await asyncio.wait_for(running, PATIENCE_S)
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
                free.wait(PATIENCE_S)
            except BaseException:
                asked.append(1)

    worker = worker_of(engine, hangs, config=quick(hung_max=1, cancel_kill_s=0.2))
    async with worker:
        stage = Stage(engine, worker)
        await stage.run("hangs", timeout_s=0.1, attempts_max=1)
        assert worker._parts.dispatch.hung_count == 1
        free.set()
        await until(lambda: worker._parts.dispatch.hung_count == 0, what="its end")
        free.clear()
        await stage.run("hangs", timeout_s=0.1, attempts_max=1)
        assert not worker._parts.fatal.happened()
        free.set()


async def test_a_run_that_was_given_up_overlaps_the_next_and_changes_nothing(engine: AnyEngine) -> None:
    free, first_over = threading.Event(), threading.Event()
    side_by_side: list[bool] = []

    def stubborn(job: Job) -> str:
        if job.attempt == 1:
            while not free.is_set():
                with suppress(BaseException):
                    free.wait(PATIENCE_S)
            first_over.set()
        else:
            side_by_side.append(not first_over.is_set())
        return f"attempt {job.attempt}"

    async with working(engine, stubborn, config=quick(cancel_kill_s=0.2)) as stage:
        job = await stage.run("stubborn", timeout_s=0.1, attempts_max=2)
        free.set()
        await until(first_over.is_set, what="the end of the first run")
        await until(lambda: stage.worker._parts.dispatch.hung_count == 0, what="its thread")
        later = await read(engine, job.id)

    assert side_by_side == [True]
    assert (job.state, job.attempt, job.result) == ("succeeded", 2, "attempt 2")
    assert (later.result, later.attempt, later.ended_at_us) == (job.result, job.attempt, job.ended_at_us)


async def test_a_suspect_that_was_given_up_takes_the_worker_from_nobody_when_it_ends() -> None:
    """By then another one may have it for itself."""
    begun = list[tuple[Callable[[], None], asyncio.Event]]()

    async def run(_: Sequence[Attempt], give_up: Callable[[], None]) -> bool:
        begun.append((give_up, ends := asyncio.Event()))
        return await ends.wait()

    async def noted(_: object) -> bool:
        return True

    executor = SimpleNamespace(hung_count=0, run=run, tell_started=lambda _: None)
    parts: list[Any] = [SimpleNamespace(arun=noted), executor, None, None, None, lambda: None]
    dispatch = Dispatch(*parts)

    async def suspect() -> None:
        one = Attempt(claimed(suspect=True), "holder", handler(noop))
        await dispatch.run([one], lambda: None)

    first = asyncio.create_task(suspect())
    await until(lambda: len(begun) == 1, what="the first is alone")
    begun[0][0]()
    second = asyncio.create_task(suspect())
    await until(lambda: len(begun) == 2, what="the second is alone")
    begun[0][1].set()
    await first
    assert dispatch.withheld_for is not None, "the second is alone"

    begun[1][1].set()
    await second
    assert dispatch.withheld_for is None
