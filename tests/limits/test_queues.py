"""A limit on a queue, or on the whole fleet: never one job more, whoever claims; and what is left starts at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest

from fencerow import Client
from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.core.worker.brought import BoundedClaim
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.limits import Limit, Rate
from fencerow.limits.limits import bound_claim
from fencerow.testing.clock import DatabaseClock
from tests.core.worker.stage import WAIT_S, quick, worker_of
from tests.kit import jobs
from tests.kit.jobs import NAME, QUEUE, AnyEngine


def claiming(
    holder: str, queue: str = QUEUE, *, bounded: bool = True
) -> Callable[[int], Operation[list[Claimed]]]:
    def claim(limit: int) -> Operation[list[Claimed]]:
        marks = [store.Mark(0)]
        return store.claim(
            queue, marks, holder=holder, names=[NAME], limit=limit, margin_s=60.0, bounded=bounded
        )

    return claim


def bounded(engine: AnyEngine, holder: str, wanted: int = 10, queue: str = QUEUE) -> BoundedClaim:
    return engine.run(bound_claim(queue, wanted, claiming(holder, queue)))


def many(engine: AnyEngine, count: int, queue: str = QUEUE) -> None:
    jobs.submit(engine, *(jobs.new_job(queue=queue) for _ in range(count)))


def define(engine: AnyEngine, *limits: Limit) -> None:
    for limit in limits:
        Client(engine).limits.define(limit)


def end(engine: AnyEngine, holder: str, *ended: Claimed) -> None:
    outcomes = [store.Success(each.id, each.attempt, "1") for each in ended]
    assert len(engine.run(store.succeed(outcomes, holder=holder))) == len(ended)


def test_workers_share_what_may_run_at_once_of_a_queue(engine: AnyEngine) -> None:
    first, second = jobs.register(engine), jobs.register(engine)
    many(engine, 10)
    define(engine, Limit("queue:mail", at_once=3))

    got = bounded(engine, first, 2)
    rest = bounded(engine, second)
    none = bounded(engine, first)

    assert (len(got.jobs), len(rest.jobs), none.jobs) == (2, 1, [])
    assert none.room == 0 and none.again_s is None
    end(engine, first, *got.jobs)
    assert len(bounded(engine, second).jobs) == 2


def test_a_claim_that_knows_no_limit_finds_nothing_in_a_limited_queue(engine: AnyEngine) -> None:
    holder = jobs.register(engine)
    many(engine, 2)
    many(engine, 2, "other")
    define(engine, Limit("queue:mail", at_once=1))

    assert jobs.claim(engine, holder) == []
    assert len(jobs.claim(engine, holder, queue="other")) == 2
    assert [lane.limited for lane in engine.run(store.lanes(QUEUE))[0]] == [True]

    Client(engine).limits.remove("queue:mail")
    assert len(jobs.claim(engine, holder)) == 2
    define(engine, Limit("fleet", at_once=1))
    assert jobs.claim(engine, holder, queue="other") == []


def test_what_a_dead_worker_holds_counts_until_it_is_taken_back(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    dying = jobs.register(engine)
    many(engine, 3)
    define(engine, Limit("queue:mail", at_once=1))
    assert len(bounded(engine, dying).jobs) == 1

    clock.advance(31)
    assert jobs.bury(engine) == [dying]
    living = jobs.register(engine)

    assert bounded(engine, living).jobs == []
    engine.run(store.reclaim([dying], limit=10, actor="reaper"))
    assert len(bounded(engine, living).jobs) == 1


def test_a_rate_lets_a_queue_start_no_more_and_says_when_it_will(
    engine: AnyEngine, clock: DatabaseClock
) -> None:
    holder = jobs.register(engine)
    many(engine, 20)
    define(engine, Limit("queue:mail", rate=Rate(1, per_s=600, burst=3)))

    burst = bounded(engine, holder)
    none = bounded(engine, holder)

    assert (len(burst.jobs), len(none.jobs)) == (3, 0)
    assert none.again_s is not None and 540 < none.again_s <= 600
    clock.advance(1_200)
    assert len(bounded(engine, holder).jobs) == 2
    clock.advance(-3_600)  # as a server's clock may
    again = bounded(engine, holder)
    assert again.jobs == [] and again.again_s is not None and again.again_s <= 1_200
    clock.advance(600)
    assert bounded(engine, holder).room == 1, "it waited for no hour"


def test_hours_keep_a_queue_closed(engine: AnyEngine, clock: DatabaseClock) -> None:
    holder = jobs.register(engine)
    many(engine, 3)
    (_, now_us) = engine.run(store.lanes(QUEUE))
    minute = now_us // 60_000_000 % 1_440
    opens, closes = ((minute + ahead) % 1_440 for ahead in (60, 120))
    define(
        engine,
        Limit("queue:mail", hours=f"{opens // 60:02}:{opens % 60:02}-{closes // 60:02}:{closes % 60:02}"),
    )

    closed = bounded(engine, holder)

    assert closed.jobs == [] and closed.again_s is not None and 3_500 < closed.again_s <= 3_600
    clock.advance(3_600)
    assert len(bounded(engine, holder, 2).jobs) == 2
    clock.advance(3_600)
    assert bounded(engine, holder).jobs == []


def test_limits_of_a_queue_and_of_the_fleet_combine(engine: AnyEngine) -> None:
    holder = jobs.register(engine)
    many(engine, 5)
    many(engine, 5, "other")
    define(engine, Limit("queue:mail", at_once=3, rate=Rate(2, per_s=60, burst=2)), Limit("fleet", at_once=4))

    mail = bounded(engine, holder)
    other = bounded(engine, holder, queue="other")

    assert (len(mail.jobs), len(other.jobs)) == (2, 2)
    assert other.room == 2, "the fleet lets 4 run"
    end(engine, holder, *other.jobs)
    assert bounded(engine, holder).jobs == []  # the rate of the queue, not the fleet
    assert len(bounded(engine, holder, queue="other").jobs) == 2


def test_a_start_that_found_no_job_costs_nothing(engine: AnyEngine) -> None:
    holder = jobs.register(engine)
    define(engine, Limit("queue:mail", rate=Rate(1, per_s=60)))

    assert bounded(engine, holder).jobs == []
    many(engine, 1)
    assert len(bounded(engine, holder).jobs) == 1


def test_counting_what_runs_reads_no_backlog(pg: PostgresEngine) -> None:
    jobs.submit(pg, *(jobs.new_job() for _ in range(2_000)))
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute("ANALYZE fencerow.jobs")
        (query,) = pg.queries["count_running"].statements
        plan = str(connection.execute(f"EXPLAIN {query.replace(':queue', repr(QUEUE))}".encode()).fetchall())

    assert "Index" in plan and "Seq Scan" not in plan, plan


class Crowd:
    """How many run at once, and how many ever did."""

    def __init__(self) -> None:
        self.now = self.most = self.ended = 0

    async def __call__(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.002)
        self.now -= 1
        self.ended += 1


@pytest.mark.parametrize("name", ["queue:mail", "fleet"])
async def test_workers_with_many_slots_run_no_more_than_the_limit_and_wait_for_no_poll(
    engine: AnyEngine, name: str
) -> None:
    crowd = Crowd()

    async def send() -> None:
        await crowd()

    await Client(engine).limits.adefine(Limit(name, at_once=3))
    await engine.arun(store.submit([jobs.new_job("{}") for _ in range(60)]))
    patient = quick(poll_max_s=30.0)  # who waited for a poll after each end would not come to an end here
    workers = [worker_of(engine, send, queues={QUEUE: 10}, config=patient) for _ in range(2)]

    async with workers[0], workers[1], asyncio.timeout(WAIT_S):
        while crowd.ended < 60:
            await asyncio.sleep(0.005)

    assert crowd.most == 3
