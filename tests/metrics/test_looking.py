"""One look at the database: exact where it may be, bounded where it must be, and then it says so."""

from __future__ import annotations

from fencerow.config import Config
from fencerow.core.store import store
from fencerow.metrics.looking import look
from fencerow.metrics.settings import MetricsSettings
from fencerow.operators.queues import pause_queue
from fencerow.testing.clock import DatabaseClock
from tests.flows.stage import Shop, advanced, end
from tests.flows.stage import shop as shop
from tests.kit.jobs import AnyEngine, claim, new_job, register, submit

HOUR_US = 3_600_000_000


def settings(**changes: int) -> MetricsSettings:
    return MetricsSettings.of(Config(**changes))  # type: ignore[arg-type]


def test_it_counts_by_queue_and_state_and_finds_the_oldest_over_all_priorities(engine: AnyEngine) -> None:
    now_us = engine.run(store.clock())
    low = new_job(priority=-5, run_at_us=now_us - HOUR_US)  # behind many that are more urgent
    submit(engine, low, *(new_job(priority=5) for _ in range(3)), new_job(queue="bulk"))
    submit(
        engine,
        new_job(delay_s=600.0),
        new_job(exclusive="a", queue="keyed"),
        new_job(exclusive="a", queue="keyed"),
    )

    seen = look(engine, settings())

    assert {key: jobs for key, jobs in seen.jobs.items() if jobs} == {
        ("mail", "due"): 4,
        ("mail", "later"): 1,
        ("bulk", "due"): 1,
        ("keyed", "waiting"): 2,
    }
    assert 3600 <= seen.oldest_queued_s["mail"] < 4000 and seen.oldest_queued_s["bulk"] < 3600
    assert seen.capped == set()
    assert (seen.lock_waits is None) == (not engine.traits.has_server)


def test_jobs_that_run_and_what_is_paused(engine: AnyEngine, clock: DatabaseClock) -> None:
    submit(engine, new_job(), new_job())
    claim(engine, register(engine, lease_s=60.0))
    engine.run(pause_queue("mail", actor="ada", reason=None))
    clock.advance(7200)

    seen = look(engine, settings())

    assert seen.jobs["mail", "running"] >= 1
    assert 7200 <= seen.oldest_running_s["mail", "send"] < 7800
    assert seen.paused_queues == ["mail"]
    assert (seen.workers, seen.late_workers) == (1, 1)


def test_beyond_its_bound_it_stops_counting_and_says_so(engine: AnyEngine) -> None:
    submit(engine, *(new_job() for _ in range(150)), *(new_job(queue="few") for _ in range(100)))

    seen = look(engine, settings(metrics_jobs_max=100))

    assert (seen.jobs["mail", "due"], seen.jobs["few", "due"]) == (100, 100)
    assert seen.capped == {("mail", "due")}


def test_flows_under_way_those_that_nobody_wakes_and_those_that_stand_still(
    shop: Shop, engine: AnyEngine, clock: DatabaseClock
) -> None:
    flow = shop.flow()
    first = flow.add("first", shop.say.call("a"))
    flow.add("behind", shop.say.call("b"), needs=[first])
    handle = flow.submit()
    under_way = look(engine, settings()).flows
    end(engine, handle.job(first).id)
    clock.advance(120)
    untold = look(engine, settings()).flows
    advanced(engine)

    assert (under_way, untold) == ((1, 0, 0, 0), (1, 1, 0, 0))
    assert look(engine, settings()).flows == (1, 0, 0, 0)
