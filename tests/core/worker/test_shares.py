"""Shares of a queue in a worker: turns from the declaration of a job to the start of its handler."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow import Client
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Lane, NewJob
from fencerow.core.store import store
from fencerow.core.worker.ageing import Ageing
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.marks import QueueView
from fencerow.core.worker.pool import Pool
from fencerow.limits import Limit
from tests.core.worker.stage import Free, handler, job_of, quick, until, worker_of
from tests.kit import jobs
from tests.kit.jobs import QUEUE, AnyEngine, register, submit

MANY = 300


def job(share: str | None, **changes: Any) -> NewJob:
    made = job_of("noted", {"share": share or "-"}, **changes)
    return NewJob(new_id(), made.args, made.args_bytes, made.template, share=share)


@pytest.mark.parametrize("slots", [1, 4])
async def test_who_comes_late_with_ten_runs_between_the_many(engine: AnyEngine, slots: int) -> None:
    ran: list[str] = []

    async def noted(share: str) -> None:
        ran.append(share)

    await engine.arun(store.submit([job("many") for _ in range(MANY)]))
    await engine.arun(store.submit([job("few") for _ in range(10)]))
    await Client(engine).limits.adefine(Limit(f"queue:{QUEUE}", slots=slots))

    async with worker_of(engine, noted, queues={QUEUE: slots}, config=quick()):
        await until(lambda: len(ran) == MANY + 10, what="all have run")

    assert ran.index("few") <= 1 + slots
    assert max(place for place, share in enumerate(ran) if share == "few") <= 20 + 2 * slots


@pytest.mark.parametrize("limited", [False, True])
async def test_nothing_is_stranded_where_all_kinds_are_mixed(engine: AnyEngine, limited: bool) -> None:
    """Shares, jobs without one, several lanes, and in front of them jobs that nobody here knows."""
    ran: list[str] = []

    async def noted(share: str) -> None:
        ran.append(share)

    submit(engine, *(jobs.new_job(share=share, priority=level) for share in "au" for level in (0, 5)))
    mixed = [job(share, priority=level) for level in (0, 5, 3) for share in ("a", None, "b", None)]
    await engine.arun(store.submit(mixed))
    await engine.arun(store.submit([job(None, priority=-1), job("a", priority=-2)]))
    if limited:
        await Client(engine).limits.adefine(Limit(f"queue:{QUEUE}", slots=2))

    async with worker_of(engine, noted, queues={QUEUE: 1}, config=quick()):
        await until(lambda: len(ran) == len(mixed) + 2, what="all have run")

    assert ran[-1] == "a" and ran[-2] == "-"


def test_a_lane_with_shares_is_served_by_itself() -> None:
    view = QueueView(QUEUE, 1.0)
    lanes = [Lane(5, 1), Lane(4, 1), Lane(3, 1, shared=True), Lane(2, 1)]
    view.swept(lanes, 2, 0.0)

    taken = view.plain_marks()
    assert [mark.priority for mark in taken] == [5, 4]
    view.claimed([], 10, lanes=taken)
    assert [mark.priority for mark in view.plain_marks()] == [3], "nothing is left above it"
    view.claimed([], 10, lanes=view.plain_marks())
    assert [mark.priority for mark in view.plain_marks()] == [2]
    view.claimed([], 10, lanes=view.plain_marks())
    assert view.plain_marks() == []


def test_a_claim_that_finds_a_share_makes_known_that_there_are_some(engine: AnyEngine) -> None:
    view = QueueView(QUEUE, 1.0)
    view.swept([Lane(0, 1)], 2, 0.0)
    submit(engine, job("a"))

    view.claimed(jobs.claim(engine, register(engine), names=["noted"]), 1)

    assert view.shared == {0}


async def test_a_buffer_keeps_the_order_of_the_turns(engine: AnyEngine) -> None:
    """By age the many old jobs of one share would go first in it."""

    async def noted(share: str) -> None: ...

    submit(engine, job("a"), job("b"))
    claimed = jobs.claim(engine, register(engine), names=["noted"])
    pool = Pool((QUEUE,), 2, 1.0, 1.0, Free(), Ageing(600.0))
    pool.open = 2
    for each in reversed(claimed):
        attempt = Attempt(each, "holder", handler(noted))
        attempt.line_us = 1
        pool.put(attempt)

    taken = [await pool.get() for _ in claimed]

    assert [each.claimed.share for each in taken if each is not None] == ["b", "a"]
