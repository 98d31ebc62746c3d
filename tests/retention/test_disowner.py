"""What no code knows fails in the end, and whoever waits for it is told."""

from __future__ import annotations

import asyncio

import pytest

from fencerow import Config
from fencerow.core.model.state import State
from fencerow.core.model.wakeup import JobsEnded, decode
from fencerow.core.store import store
from fencerow.core.telemetry import Telemetry
from fencerow.retention.disowner import LOOK_EVERY_S, Disowner
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine, new_job, read, submit
from tests.kit.sites import site_of

DAY_S = 86_400.0


async def test_each_lane_of_the_served_queues_is_looked_at(
    engine: AnyEngine, clock: DatabaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = submit(engine, new_job(), new_job(priority=5), new_job(queue="post"))
    elsewhere = submit(engine, new_job(queue="other"))
    engine.run(store.mark_awaited([here[1]]))
    clock.advance(DAY_S + 1)
    young = submit(engine, new_job())
    said: list[str] = []
    monkeypatch.setattr(engine, "wake", said.extend)
    telemetry = Telemetry()
    disowner = Disowner(
        site_of(
            engine,
            config=Config(unknown_max_s=DAY_S),
            telemetry=telemetry,
            queues=lambda: ["mail", "post"],
        )
    )

    assert await disowner.tick() == LOOK_EVERY_S

    states = {each: await asyncio.to_thread(read, engine, each) for each in here + elsewhere + young}
    assert [states[each].state for each in here] == [State.FAILED] * 3
    assert [states[each].state for each in elsewhere + young] == [State.QUEUED] * 2
    assert [decode(each) for each in said] == [JobsEnded((here[1],))]
    assert telemetry.counters.get("jobs_disowned") == 3
