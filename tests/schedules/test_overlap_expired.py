"""A job that has expired runs no more: the next fire need not wait for the sweep that ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.schedules import running
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine, claim, new_job, register
from tests.schedules.test_ticks import fired

Put = Callable[..., Any]


@pytest.mark.parametrize("exclusive", [None, "k"])
def test_a_job_that_has_expired_keeps_no_fire_back(
    engine: AnyEngine, clock: DatabaseClock, put: Put, exclusive: str | None
) -> None:
    put(spec={"interval_s": 600}, work=new_job(id="-", expires_s=900.0, exclusive=exclusive))
    clock.advance(600)
    (old,) = fired(engine)
    clock.advance(600)
    assert fired(engine) == []

    clock.advance(600)
    (new,) = fired(engine)
    clock.advance(901)
    runs, _jobs = engine.run(running.run_now("report", None, actor="ada"))

    assert runs[0].job_id is not None
    assert {each.id for each in engine.run(store.expire(limit=9, actor=None))} == {old.id, new.id}


def test_a_job_that_runs_keeps_its_fires_back_past_its_expiry(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(spec={"interval_s": 600}, work=new_job(id="-", expires_s=900.0))
    clock.advance(600)
    fired(engine)
    assert len(claim(engine, register(engine))) == 1

    clock.advance(1_800)

    assert fired(engine) == []
