"""Where age counts: a job that has been due for long goes before one of a higher priority that has just come."""

from __future__ import annotations

import time

import pytest

from fencerow.core.model.job import QueueLane
from fencerow.core.model.lane import STRICT, Ageing
from fencerow.core.store import store
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.marks import QueueView
from fencerow.core.worker.pool import Pool
from tests.core.worker.stage import Free, handler, job_of, quick, until, worker_of
from tests.core.worker.test_parts import claimed
from tests.kit.jobs import QUEUE, AnyEngine

MINUTE_US = 60_000_000
LONG_AGO_US = 1_500_000_000_000_000
AGEING = Ageing(60.0)


def test_a_step_of_priority_is_worth_so_many_seconds() -> None:
    assert AGEING.rank(0, 0) < AGEING.rank(1, MINUTE_US + 1)
    assert AGEING.rank(0, 0) > AGEING.rank(1, MINUTE_US - 1)
    assert AGEING.rank(0, 0) == AGEING.rank(1, MINUTE_US)
    assert STRICT.rank(1, MINUTE_US) < STRICT.rank(0, 0)


@pytest.mark.parametrize(("ageing", "order"), [(AGEING, [0, 9, 5]), (STRICT, [9, 5, 0])])
def test_the_lane_whose_first_job_has_aged_enough_is_claimed_first(ageing: Ageing, order: list[int]) -> None:
    view = QueueView("mail", 1.0, ageing)
    lanes = [QueueLane(9, 80 * MINUTE_US), QueueLane(5, 77 * MINUTE_US), QueueLane(0, 10 * MINUTE_US)]
    view.swept(lanes, 90 * MINUTE_US, time.monotonic())

    assert [mark.priority for mark in view.marks()] == order


def test_a_lane_whose_old_jobs_are_claimed_stands_back_again() -> None:
    view = QueueView("mail", 1.0, AGEING)
    view.swept([QueueLane(9, 80 * MINUTE_US), QueueLane(0, 10 * MINUTE_US)], 90 * MINUTE_US, time.monotonic())

    view.claimed([claimed(0, 85 * MINUTE_US)], asked=1)

    assert [mark.priority for mark in view.marks()] == [9, 0]


async def brief(number: int) -> int:
    return number


@pytest.mark.parametrize(("ageing", "order"), [(AGEING, [0, 9]), (STRICT, [9, 0])])
async def test_who_was_claimed_waits_for_a_slot_in_the_same_order(ageing: Ageing, order: list[int]) -> None:
    """Else an aged job would be claimed, and passed over until it is released again."""
    pool = Pool(("mail",), 2, 1.0, 1.0, Free(), ageing)
    pool.open = 2
    for priority, run_at_us in ((9, 80 * MINUTE_US), (0, 10 * MINUTE_US)):
        pool.put(Attempt(claimed(priority, run_at_us), "holder", handler(brief)))

    taken = [await pool.get() for _ in order]

    assert [attempt.claimed.priority for attempt in taken if attempt is not None] == order


@pytest.mark.parametrize(("ageing_s", "last"), [(60.0, 9), (None, 0)])
async def test_an_old_job_runs_before_new_ones_of_a_higher_priority(
    engine: AnyEngine, ageing_s: float | None, last: int
) -> None:
    ran: list[int] = []

    async def noted(priority: int) -> None:
        ran.append(priority)

    jobs = [job_of("noted", {"priority": 9}, priority=9) for _ in range(3)]
    old = job_of("noted", {"priority": 0}, run_at_us=LONG_AGO_US)
    await engine.arun(store.submit([*jobs, old]))

    async with worker_of(engine, noted, queues={QUEUE: 1}, config=quick(priority_ageing_s=ageing_s)):
        await until(lambda: len(ran) == 4, what="all have run")

    assert ran[-1] == last
