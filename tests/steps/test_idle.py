"""A worker that ends when nothing is left goes on with a job whose sleep is over."""

from __future__ import annotations

import asyncio

import pytest

from fencerow import App, Job
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.steps.waker import Waker
from fencerow.testing.clock import clock_of
from tests.events.conftest import app as app
from tests.kit.pace import PATIENCE_S


async def test_a_sleep_that_is_over_ends_before_the_worker_does(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick = Waker.tick

    async def late(waker: Waker) -> float:
        await asyncio.sleep(1.0)  # the worker has found nothing due by then
        return await tick(waker)

    @app.job
    async def sleeper(job: Job) -> str:
        await job.sleep(600)
        return "awake"

    assert isinstance(app.engine, SqliteEngine | PostgresEngine)
    monkeypatch.setattr(Waker, "tick", late)
    handle = await sleeper.asubmit()
    async with asyncio.timeout(PATIENCE_S):
        await app.worker().run(until_idle=True)
        clock_of(app.engine).advance(601)
        await app.worker().run(until_idle=True)

    assert await handle.aresult(0) == "awake"
