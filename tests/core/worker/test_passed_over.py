"""A due job whose row somebody has locked at each look: all claims pass it over, but one waits for it."""

from __future__ import annotations

import time

import pytest

from fencerow.core.model.job import QueueLane
from fencerow.core.store import store
from fencerow.core.worker import claimer
from fencerow.core.worker.marks import QueueView
from fencerow.db.postgres import PostgresEngine
from tests.core.worker.stage import until, worker_of
from tests.core.worker.test_parts import claimed
from tests.kit.jobs import new_job
from tests.unique.test_submitting import UNTIL_START, asked


async def brief(to: str) -> str:
    return to


WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def somebody_waits(engine: PostgresEngine) -> bool:
    with engine.session() as session:
        return session.connection.execute(WAITING).fetchone() is not None


async def test_a_locked_job_is_started_by_whoever_waits_for_it(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Submits that come without a pause leave no moment in which a look would find it free. Who waits is the next."""
    monkeypatch.setattr(claimer, "LOCK_WAIT_MS", 60_000)
    engine, first = pg, asked(UNTIL_START, name="brief")
    engine.run(store.submit_asked([first]))

    async with worker_of(engine, brief):
        with engine.session() as session:
            session.run(store.submit_asked([asked(UNTIL_START, name="brief")]))
            await until(lambda: somebody_waits(engine), what="a claim waits for the row")
        await until(
            lambda: first.job.id in engine.run(store.outcomes([first.job.id])), what="the job has run"
        )


async def test_one_that_stays_locked_holds_up_no_other(pg: PostgresEngine) -> None:
    engine, first, other = pg, asked(UNTIL_START, name="brief"), new_job(name="brief")
    engine.run(store.submit_asked([first]))

    with engine.session() as session:
        session.run(store.submit_asked([asked(UNTIL_START, name="brief")]))
        async with worker_of(engine, brief):
            engine.run(store.submit([other]))
            await until(lambda: other.id in engine.run(store.outcomes([other.id])), what="the other has run")


def test_the_first_of_a_lane_is_passed_over_by_a_claim_of_what_comes_behind_it() -> None:
    view = QueueView("mail", 1.0)
    lanes = [
        QueueLane(5, 10),
        QueueLane(3, 20),
        QueueLane(2, 30),
        QueueLane(1, 99_000_000),
        QueueLane(3, 10, "suspect:"),
    ]
    view.swept(lanes, 1_000, time.monotonic())
    marks = view.next(2)

    taken = [claimed(priority=5, run_at_us=10), claimed(priority=3, run_at_us=21)]
    view.heads.took(taken)
    view.claimed(taken, 2, None, marks)
    assert view.heads.passed_over() == [(3, "")]  # no claim has come to the lane below

    view.claimed([], 2, None, marks)
    assert view.heads.passed_over() == [(3, ""), (2, "")]

    view.heads.took_up((3, ""))
    assert view.heads.passed_over() == [(2, "")]
