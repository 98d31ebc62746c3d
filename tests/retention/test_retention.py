"""Finished jobs go by age, by number and by their own age, with what was noted about them; live ones never."""

from __future__ import annotations

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.operators import looking
from fencerow.retention.purging import (
    forget_workers,
    purge_by_age,
    purge_by_count,
    purge_by_own_age,
    spent_workers,
)
from fencerow.testing.clock import DatabaseClock
from tests.core.store import stage
from tests.core.store.stage import Placed, bring, rows
from tests.kit.jobs import LATE_US, AnyEngine, register, running, submit

DAY = 86400.0


def finished(engine: AnyEngine, **changes: object) -> str:
    """A finished job about which everything was noted that can be."""
    job = running(engine, holder := register(engine), **changes)
    fence = Placed(job.id, holder, job.attempt)
    engine.run(store.progress(job.id, holder=holder, attempt=1, percent=1.0, note="n"))
    engine.run(store.log(job.id, holder=holder, attempt=1, level="info", message="m"))
    engine.run(store.cancel(job.id, actor="ada"))
    assert stage.succeed(engine, fence)
    return job.id


def left(engine: AnyEngine) -> set[str]:
    return {job.id for job in engine.run(looking.list_jobs(limit=1000))}


def noted(engine: AnyEngine) -> set[str]:
    return {
        str(row["job_id"])
        for name in ("job_events", "job_logs", "job_progress")
        for row in rows(engine, "SELECT job_id FROM {" + name + "}")
    }


def test_by_age(engine: AnyEngine, clock: DatabaseClock) -> None:
    old = finished(engine)
    kept = finished(engine, retention_s=10 * DAY)
    failed = bring(engine, State.FAILED)
    (live,) = submit(engine)
    clock.advance(2 * DAY)
    young = finished(engine)

    assert engine.run(purge_by_age(State.SUCCEEDED, age_s=DAY, limit=100)) == 1
    assert left(engine) == {kept, failed.id, live, young}
    assert old not in noted(engine) and {kept, young} <= noted(engine)


def test_by_its_own_age(engine: AnyEngine, clock: DatabaseClock) -> None:
    short, long, none = (
        finished(engine, retention_s=600),
        finished(engine, retention_s=6000),
        finished(engine),
    )
    clock.advance(300)
    assert engine.run(purge_by_own_age(limit=10)) == 0
    clock.advance(600)
    assert engine.run(purge_by_own_age(limit=10)) == 1
    assert left(engine) == {long, none} == noted(engine)
    assert short not in left(engine)


def test_by_number(engine: AnyEngine, clock: DatabaseClock) -> None:
    jobs = []
    for _ in range(5):
        clock.advance(1)
        jobs.append(finished(engine))
    failed = bring(engine, State.FAILED)
    submit(engine)

    assert engine.run(purge_by_count(State.SUCCEEDED, keep=9, limit=100)) == 0
    assert engine.run(purge_by_count(State.SUCCEEDED, keep=5, limit=100)) == 0
    assert engine.run(purge_by_count(State.SUCCEEDED, keep=2, limit=100)) == 3
    assert left(engine) >= {*jobs[3:], failed.id} and not left(engine) & {*jobs[:3]}
    assert noted(engine) == {*jobs[3:], failed.id}


def test_to_keep_none_leaves_none(engine: AnyEngine, clock: DatabaseClock) -> None:
    jobs = {finished(engine) for _ in range(2)}
    clock.advance(1)
    assert engine.run(purge_by_count(State.SUCCEEDED, keep=0, limit=100)) == 2
    assert not left(engine) & jobs


@pytest.mark.parametrize("limit", [1, 2])
def test_batches_are_bounded(engine: AnyEngine, clock: DatabaseClock, limit: int) -> None:
    for _ in range(3):
        finished(engine)
    clock.advance(2)
    assert engine.run(purge_by_age(State.SUCCEEDED, age_s=1, limit=limit)) == limit
    assert len(left(engine)) == 3 - limit == len({*noted(engine)})


def test_a_deleted_job_takes_its_notes_along_and_live_ones_stay(engine: AnyEngine) -> None:
    gone, kept = finished(engine), finished(engine)
    live = bring(engine, State.RUNNING)
    engine.run(store.log(live.id, holder=live.holder, attempt=1, level="info", message="m"))

    assert engine.run(store.delete([gone, live.id])) == [gone]
    assert left(engine) == {kept, live.id} == noted(engine)
    assert engine.run(store.succeed([Success(live.id, 1, "1")], holder=live.holder))


def test_workers_that_ended_long_ago_are_forgotten_unless_they_hold_something(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    retired, holding, alive = register(engine), register(engine), register(engine, lease_s=1e6)
    running(engine, holding)
    engine.run(store.retire(holder=retired))
    clock.advance(31)
    assert engine.run(store.die(judge=alive, until_us=LATE_US)) == [holding]
    clock.advance(100)

    assert engine.run(spent_workers(age_s=1000)) == []
    assert engine.run(spent_workers(age_s=50)) == [retired]
    assert engine.run(forget_workers([retired, alive], age_s=1000)) == []
    assert engine.run(forget_workers([retired, alive], age_s=50)) == [retired]
    assert {worker.id for worker in engine.run(store.list_workers())} == {holding, alive}
    assert [worker.id for worker in engine.run(store.list_workers(state="alive"))] == [alive]
