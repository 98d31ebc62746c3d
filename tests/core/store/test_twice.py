"""A job that is live although it has ended: no door lets it in, so a row that was put back by hand stands for it.

Whatever ends it, it leaves the live jobs, its first end stands, and nothing else is held up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.errors import IllegalMove
from fencerow.retention import disown as disowning
from fencerow.retention.periods import make_period
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.core.store.stage import rows
from tests.core.worker.stage import until, working
from tests.kit.jobs import AnyEngine, bury, claim, new_job, overdue, register, submit

LEASE_S = 1e5  # but for the ends that need a dead holder


def ended_and_live(engine: AnyEngine) -> str:
    """A job that has succeeded with the result 1, and lies among the live ones once more."""
    job = new_job(expires_s=500.0, timeout_s=10.0, attempts_max=1, crashes_max=1)
    submit(engine, job)
    (claimed,) = claim(engine, holder := register(engine))
    engine.run(store.succeed([store.Success(job.id, claimed.attempt, "1")], holder=holder))
    submit(engine, job)
    return job.id


def ends_of(engine: AnyEngine, job_id: str) -> list[dict[str, object]]:
    return rows(engine, "SELECT state, result FROM {finished_jobs} WHERE id = '" + job_id + "'")


def live(engine: AnyEngine, job_id: str) -> list[dict[str, object]]:
    return rows(engine, "SELECT state FROM {jobs} WHERE id = '" + job_id + "'")


def held(engine: AnyEngine) -> tuple[str, int]:
    (claimed,) = claim(engine, holder := register(engine, lease_s=LEASE_S), margin_s=0.0)
    return holder, claimed.attempt


def succeed(engine: AnyEngine, job_id: str, _: DatabaseClock) -> Operation[Any]:
    holder, attempt = held(engine)
    return store.succeed([store.Success(job_id, attempt, "2")], holder=holder)


def fail(engine: AnyEngine, job_id: str, _: DatabaseClock) -> Operation[Any]:
    holder, attempt = held(engine)
    return store.fail([store.Failure(job_id, attempt, "{}")], holder=holder)


def crash(engine: AnyEngine, job_id: str, _: DatabaseClock) -> Operation[Any]:
    holder, attempt = held(engine)
    return store.crash([store.Crash(job_id, attempt, 0.0, "killed")], holder=holder)


def stop(engine: AnyEngine, job_id: str, _: DatabaseClock) -> Operation[Any]:
    holder, attempt = held(engine)
    engine.run(store.cancel(job_id, actor="ada"))
    return store.stop([store.Stop(job_id, attempt)], holder=holder)


def cancel(_: AnyEngine, job_id: str, __: DatabaseClock) -> Operation[Any]:
    return store.cancel(job_id, actor="ada")


def expire(_: AnyEngine, __: str, clock: DatabaseClock) -> Operation[Any]:
    clock.advance(501.0)
    return store.expire(limit=10, actor=None)


def disown(_: AnyEngine, __: str, clock: DatabaseClock) -> Operation[Any]:
    clock.advance(1000.0)
    return disowning.disown("mail", 0, age_s=900.0, look=10, actor=None)


def reclaim(engine: AnyEngine, job_id: str, clock: DatabaseClock) -> Operation[Any]:
    (_,) = claim(engine, dead := register(engine), margin_s=0.0)
    engine.run(store.cancel(job_id, actor="ada"))
    clock.advance(31.0)
    bury(engine)
    return store.reclaim([dead], limit=10, actor=None)


def time_out(engine: AnyEngine, job_id: str, _: DatabaseClock) -> Operation[Any]:
    holder, attempt = held(engine)
    engine.run(store.renew(holder=holder, stated=overdue((job_id, attempt, True))))
    return store.time_out(limit=10, delay_s=0.0, actor=None)


ENDS = [succeed, fail, crash, stop, cancel, expire, disown, reclaim, time_out]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_the_first_end_stands_whatever_ends_it_again(
    engine: AnyEngine, clock: DatabaseClock, end: Callable[..., Operation[Any]]
) -> None:
    job_id = ended_and_live(engine)

    engine.run(end(engine, job_id, clock))

    assert live(engine, job_id) == []
    assert [(row["state"], str(row["result"])) for row in ends_of(engine, job_id)] == [("succeeded", "1")]


@pytest.mark.parametrize("end", [fail, cancel, reclaim], ids=lambda end: end.__name__)
def test_it_stands_in_whatever_period_it_lies(pg: PostgresEngine, end: Callable[..., Operation[Any]]) -> None:
    job_id = ended_and_live(pg)
    period = pg.run(make_period(State.SUCCEEDED, length_s=1000.0, lock=1))
    assert period is not None
    rows(pg, f"UPDATE {{finished_jobs}} SET period = {period.id} WHERE id = '{job_id}'")

    pg.run(end(pg, job_id, clock_of(pg)))

    assert (live(pg, job_id), len(ends_of(pg, job_id))) == ([], 1)


async def test_a_worker_that_ends_it_again_with_others_ends_them_all(engine: AnyEngine) -> None:
    """The statement for first ends is refused on PostgreSQL; it must cost none of them a failure."""

    async def send(to: str) -> int:
        return 2

    twice = ended_and_live(engine)
    submit(engine, *(others := [new_job() for _ in range(3)]))

    async with working(engine, send) as stage:
        await until(
            lambda: all(live(engine, job_id) == [] for job_id in (twice, *(job.id for job in others)))
        )

    assert [(row["state"], str(row["result"])) for row in ends_of(engine, twice)] == [("succeeded", "1")]
    assert {str(row["result"]) for job in others for row in ends_of(engine, job.id)} == {"2"}
    assert (stage.counters.get("outcomes_refused"), stage.counters.get("jobs_failed")) == (0, 0)


def test_its_fence_is_that_of_the_live_one(engine: AnyEngine) -> None:
    """What is told of the finished one would make a worker believe that it had lost the job, and let go of it."""
    job_id = ended_and_live(engine)
    holder, attempt = held(engine)

    fence = engine.run(store.read_fences([job_id]))[job_id]

    assert (fence.state, fence.holder, fence.attempt) == (State.RUNNING, holder, attempt)


def test_it_is_not_revived_while_it_is_live(engine: AnyEngine) -> None:
    job_id = ended_and_live(engine)

    with pytest.raises(IllegalMove) as refused:
        engine.run(store.revive(job_id, actor=None))

    assert refused.value.state == "queued"
    assert (len(live(engine, job_id)), len(ends_of(engine, job_id))) == (1, 1)
