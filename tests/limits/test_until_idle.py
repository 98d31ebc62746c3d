"""Who works until nothing is due does not leave a job at its gate that is due there."""

from __future__ import annotations

import asyncio

from fencerow import App
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.limits import Limit
from fencerow.testing.clock import clock_of
from tests.core.app.conftest import app, url  # noqa: F401 (fixtures)
from tests.kit.pace import PATIENCE_S


async def test_a_job_whose_time_has_come_at_its_gate_runs(app: App) -> None:  # noqa: F811
    """Its gate was looked at before: no arrival tells of it, only the time at which it is due."""
    ran: list[int] = []

    @app.job(limits="github")
    async def sync(number: int) -> None:
        ran.append(number)

    async def work() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await app.worker().run(until_idle=True)

    assert isinstance(app.engine, SqliteEngine | PostgresEngine)
    clock = clock_of(app.engine)
    await app.client.limits.adefine(Limit("github", at_once=1))
    for number in range(5):
        await sync.using(delay_s=600).asubmit(number)
        await work()
        assert ran == list(range(number))
        clock.advance(601)

        await work()
        assert ran == list(range(number + 1))
