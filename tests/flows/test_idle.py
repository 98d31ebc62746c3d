"""A worker that ends when nothing is left goes on with the jobs of flows, be it that it hears of their ends or not."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from fencerow import App, Job
from fencerow.core.store.attempts import Requeued
from fencerow.core.telemetry import Telemetry
from fencerow.db.run import Operation, Steps, execute, operation
from fencerow.flows import standing, waker
from fencerow.flows.standing import FlowChore
from fencerow.flows.waits import wake_waiters
from fencerow.flows.waker import FlowWaker
from fencerow.flows.waking import FlowsWanted
from tests.events.conftest import app as app
from tests.kit.pace import PATIENCE_S


async def test_a_flow_of_whose_ends_nobody_has_heard_yet_is_gone_on_with(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job
    async def part(word: str) -> str:
        return word

    @app.job
    async def whole(job: Job) -> str:
        flow = app.flow("parts")
        flow.add("a", part.call("a"))
        return (await flow.arun_within(job)).result(part, "a")

    for module, pause in ((standing, "LOOK_S"), (waker, "POLL_S")):
        monkeypatch.setattr(module, pause, 1.0)
    monkeypatch.setattr(FlowChore, "is_for", lambda *_: False)
    handle = await whole.asubmit()
    async with asyncio.timeout(PATIENCE_S):
        await app.worker().run(until_idle=True)

    assert await handle.aresult(0) == "a"


async def test_a_job_that_somebody_else_is_just_waking_is_waited_for(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has told of the end of the flow, and has not woken the job that waits for it."""

    @app.job
    async def part(word: str) -> str:
        return word

    @app.job
    async def whole(job: Job) -> str:
        flow = app.flow("parts")
        flow.add("a", part.call("a"))
        return (await flow.arun_within(job)).result(part, "a")

    told_at: list[float] = []

    @operation()
    def wake_nobody() -> Steps[list[Requeued]]:
        yield from execute("flow_waits_over", limit=0)
        return []

    def wake_late(*, actor: str | None) -> Operation[list[Requeued]]:
        told_at.append(time.monotonic())
        is_early = time.monotonic() < told_at[0] + 1.0
        return wake_nobody() if is_early else wake_waiters(actor=actor)

    monkeypatch.setattr(waker, "wake_waiters", wake_late)
    monkeypatch.setattr(waker, "POLL_S", 0.2)
    handle = await whole.asubmit()
    async with asyncio.timeout(PATIENCE_S):
        await app.worker().run(until_idle=True)

    assert await handle.aresult(0) == "a"


async def test_it_is_not_idle_while_it_looks() -> None:
    looks, goes_on = asyncio.Event(), asyncio.Event()

    class Slow:
        async def arun(self, _operation: object) -> FlowsWanted:
            looks.set()
            await goes_on.wait()
            return FlowsWanted(untold=False, live=False, awaited=False)

    slow: Any = Slow()
    made = FlowWaker(lambda: slow, Telemetry())
    ticking = asyncio.create_task(made.tick())
    await looks.wait()
    assert not made.is_idle
    goes_on.set()
    await ticking
    assert made.is_idle
