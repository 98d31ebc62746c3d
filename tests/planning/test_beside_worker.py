"""After an outage a simulation is done when a worker on a real database is: its ticks, turns and claims, with the
clock moved on by a minute at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.planning.simulating import simulated
from fencerow.schedules import ticking
from fencerow.schedules.definition import Overlap
from fencerow.schedules.misfire import Misfire
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing, looks
from tests.kit import jobs
from tests.kit.jobs import AnyEngine
from tests.planning.plans import plan_of
from tests.schedules import conftest as of_schedules

put = of_schedules.put  # a fixture

OUTAGE_S = 3 * 3600
MINUTES = 5
PLAN: dict[str, Any] = {
    "workers": {"slots": 10},
    "keys": {"provider": {"entities": 2}},
    "jobs": {"deal": {"key": "provider", "rate": 4, "duration_s": MINUTES * 60, "misfire": "all"}},
    "outage": {"starts_s": 3600, "lasts_s": OUTAGE_S},
}


def test_both_are_done_at_the_same_time(
    engine: AnyEngine, clock: DatabaseClock, put: Callable[..., Any]
) -> None:
    for entity in range(2):
        work = jobs.new_job(id="-", exclusive=f"provider/{entity}")
        spec = {"rate": 4, "per": "hour"}
        put(f"deal-{entity}", spec=spec, work=work, misfire=Misfire.ALL, overlap=Overlap.ALLOW)
    clock.advance(OUTAGE_S)

    made, minutes = worked(engine, clock)
    played = simulated(plan_of(PLAN))

    assert played.drained_s is not None
    assert minutes * 60 == pytest.approx(played.drained_s, abs=3 * MINUTES * 60)
    assert made == pytest.approx(2 * 4 * (OUTAGE_S / 3600 + minutes / 60), abs=4)


def registered(engine: AnyEngine) -> str:
    """A worker that serves the queue."""
    info = msgspec.json.encode({"queues": [jobs.QUEUE]}).decode()
    holder = new_id()
    made = store.register(holder=holder, name="w", host="h", pid=1, info=info, lease_s=1e6)
    assert engine.run(made)
    return holder


def worked(engine: AnyEngine, clock: DatabaseClock) -> tuple[int, int]:
    """Work until no job is left: how many there were, and how many minutes it took."""
    holder = registered(engine)
    made, ends, live = 0, dict[int, list[store.Success]](), 0
    for minute in range(600):
        ended = ends.pop(minute, [])
        if ended:
            engine.run(store.succeed(ended, holder=holder))
            live -= len(ended)
        while fired := engine.run(ticking.tick()).jobs:
            made, live = made + len(fired), live + len(fired)
        if not live:
            return made, minute
        while engine.run(looks.turns_wanted())[0]:
            engine.run(handing.hand_over())
        for each in jobs.claim(engine, holder, limit=10):
            ends.setdefault(minute + MINUTES, []).append(store.Success(each.id, each.attempt, "null"))
        clock.advance(60)
    raise AssertionError("it is never done")
