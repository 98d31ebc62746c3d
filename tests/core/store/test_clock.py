"""The clock that tests move is the one that decides ownership."""

from __future__ import annotations

from fencerow.core.store import store
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.kit.jobs import AnyEngine, bury, claim, new_job, register, running, submit


def test_an_hour_passes_at_once(engine: AnyEngine, clock: DatabaseClock) -> None:
    before = engine.run(store.clock())
    clock.advance(3600)
    assert 3600 * 10**6 <= engine.run(store.clock()) - before < 3660 * 10**6

    clock.close()
    assert engine.run(store.clock()) - before < 60 * 10**6


def test_a_second_clock_goes_on_from_where_the_first_one_is(engine: AnyEngine) -> None:
    before = engine.run(store.clock())
    clock_of(engine).advance(7200)
    clock_of(engine).advance(-3600)
    assert 3600 * 10**6 <= engine.run(store.clock()) - before < 3660 * 10**6

    clock_of(engine).close()
    assert engine.run(store.clock()) - before < 60 * 10**6


async def test_a_lease_runs_out_when_the_clock_says_so(engine: AnyEngine, clock: DatabaseClock) -> None:
    job = running(engine, holder := register(engine, lease_s=3600))
    clock.advance(3000)
    assert bury(engine) == []
    clock.advance(1200)
    assert bury(engine) == [holder]
    assert await engine.arun(store.dead_holders()) == [holder]
    assert job.attempt == 1


def test_a_delay_passes(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine, new_job(delay_s=60))
    holder = register(engine)
    assert claim(engine, holder) == []
    clock.advance(61)
    assert len(claim(engine, holder)) == 1
