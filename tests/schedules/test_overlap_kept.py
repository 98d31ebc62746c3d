"""Whether an earlier job has ended is known as long as it has not, whatever was purged and whatever came since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencerow.core.store import store
from fencerow.schedules import ticking
from fencerow.schedules.definition import Overlap
from fencerow.schedules.misfire import Misfire
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine
from tests.schedules.test_ticks import fired, ticks

Put = Callable[..., Any]


def purge(engine: AnyEngine) -> None:
    engine.run(ticking.note_ended(limit=100))
    engine.run(ticking.purge_ticks(age_s=60.0, limit=3))


def test_a_tick_is_kept_as_long_as_its_job_lives(engine: AnyEngine, clock: DatabaseClock, put: Put) -> None:
    put(spec={"interval_s": 600})
    clock.advance(600)
    (job,) = fired(engine)
    for _ in range(6):
        clock.advance(3600)
        assert fired(engine) == [], "two run side by side"
        purge(engine)

    engine.run(store.cancel(job.id, actor="ada"))
    clock.advance(600)
    (_another,) = fired(engine)
    purge(engine)
    purge(engine)

    assert job.id not in {each.job_id for each in ticks(engine)}


def test_each_earlier_job_is_asked_for(engine: AnyEngine, clock: DatabaseClock, put: Put) -> None:
    rules = {"spec": {"interval_s": 60}, "misfire": Misfire.ALL, "catchup_max": 30}
    put(**rules, overlap=Overlap.ALLOW)
    clock.advance(30 * 60)
    first, *others = fired(engine)
    assert len(others) > 20
    for each in others:
        engine.run(store.cancel(each.id, actor="ada"))
    engine.run(ticking.note_ended(limit=100))

    put(spec={"interval_s": 60}, overlap=Overlap.SKIP)
    clock.advance(3600)
    assert fired(engine) == []
    engine.run(store.cancel(first.id, actor="ada"))
    clock.advance(60)
    assert len(fired(engine)) == 1
