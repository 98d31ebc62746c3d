"""A worker lets finished jobs go by itself, on both engines."""

from __future__ import annotations

import asyncio

import pytest

from fencerow.core.store import store
from fencerow.retention import maintenance
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import quick, working
from tests.kit.jobs import AnyEngine

MINUTE = 60.0


async def test_what_is_past_its_retention_goes(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "EVERY_S", 0.05)
    config = quick(
        lease_s=1e3, retention_succeeded_s=10 * MINUTE, retention_failed_s=1e6, retention_period_s=MINUTE
    )

    def good() -> None: ...

    async with working(engine, good, config=config) as stage:
        by_row = await stage.run("good", retention_s=MINUTE)
        clock.advance(15.0)
        by_age = await stage.run("good")
        clock.advance(40 * MINUTE)
        kept = await stage.run("good")
        async with asyncio.timeout(60):
            while await engine.arun(store.existing([by_row.id, by_age.id])):
                pass
        assert await engine.arun(store.existing([kept.id])) == {kept.id}
        assert not stage.heard.all("loop_error")
