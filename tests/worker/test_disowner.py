"""What no code knows fails in the end, and whoever waits for it is told."""

from __future__ import annotations

import asyncio

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.telemetry import Telemetry
from fencerow.retention.disowner import LOOK_EVERY_S, Disowner
from fencerow.testing.clock import DatabaseClock
from tests.jobs import AnyEngine, new_job, read, submit

DAY_S = 86_400.0


async def test_each_lane_of_the_served_queues_is_looked_at(engine: AnyEngine, clock: DatabaseClock) -> None:
    here = submit(engine, new_job(), new_job(priority=5), new_job(queue="post"))
    elsewhere = submit(engine, new_job(queue="other"))
    engine.run(store.mark_awaited([here[1]]))
    clock.advance(DAY_S + 1)
    young = submit(engine, new_job())
    ended: list[str] = []
    telemetry = Telemetry()
    disowner = Disowner(
        engine,
        telemetry,
        age_s=DAY_S,
        actor="worker w",
        queues=lambda: ["mail", "post"],
        on_ended=ended.extend,
    )

    assert await disowner.tick() == LOOK_EVERY_S

    states = {each: await asyncio.to_thread(read, engine, each) for each in here + elsewhere + young}
    assert [states[each].state for each in here] == [State.FAILED] * 3
    assert [states[each].state for each in elsewhere + young] == [State.QUEUED] * 2
    assert ended == [here[1]]
    assert telemetry.counters.get("jobs_disowned") == 3
