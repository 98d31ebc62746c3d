"""Affinity in workers: who carries the label runs the job, and after its wait anybody does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, QueueLane
from fencerow.core.store import store
from fencerow.core.store.claims import NIL, Mark
from fencerow.core.store.hints import hints_of
from fencerow.core.worker.marks import QueueView
from tests.core.worker.stage import job_of, quick, until, worker_of
from tests.kit.jobs import QUEUE, AnyEngine

SLOW_POLL = 30.0  # a look that comes by itself comes too late: only a hint brings it

OWN = "label:gpu"


def job(which: str, affinity: str | None = "gpu", share: str | None = None, **changes: Any) -> NewJob:
    made = job_of("noted", {"which": which}, **changes)
    return NewJob(new_id(), made.args, made.args_bytes, made.template, share=share, affinity=affinity)


def noting(ran: list[str], who: str) -> Callable[..., Any]:
    async def noted(which: str) -> None:
        ran.append(f"{which} at {who}")

    return noted


async def test_a_job_runs_where_its_label_is_and_after_its_wait_anywhere(engine: AnyEngine) -> None:
    ran: list[str] = []
    plain = worker_of(engine, noting(ran, "plain"), config=quick())
    labelled = worker_of(engine, noting(ran, "labelled"), config=quick(labels="big, gpu"))

    async with plain:
        await engine.arun(
            store.submit_gated([job("own"), job("lent", affinity_wait_s=0.05), job("free", None)])
        )
        await until(lambda: len(ran) == 2, what="both that anybody may take")
        assert sorted(ran) == ["free at plain", "lent at plain"]
        async with labelled:
            await until(lambda: len(ran) == 3, what="the third")
            (worker,) = [each for each in await engine.arun(store.list_workers()) if each.labels]
            assert worker.labels == {"big", "gpu"}
    assert ran[2] == "own at labelled"


async def test_a_hint_wakes_who_carries_the_label(engine: AnyEngine) -> None:
    ran: list[str] = []
    config = quick(labels="gpu", poll_max_s=SLOW_POLL)

    async with worker_of(engine, noting(ran, "labelled"), config=config):
        first = job("first")
        await engine.arun(store.submit_gated([first]))
        engine.wake(hints_of([first]))
        await until(lambda: ran == ["first at labelled"], what="it runs")


async def test_a_retry_runs_where_its_label_is(engine: AnyEngine) -> None:
    ran: list[str] = []

    async def noted(which: str) -> None:
        ran.append("labelled")
        if len(ran) == 1:
            raise ConnectionError(which)

    async with (
        worker_of(engine, noting(ran, "plain"), config=quick()),
        worker_of(engine, noted, config=quick(labels="gpu")),
    ):
        await engine.arun(store.submit_gated([job("again")]))
        await until(lambda: len(ran) == 2, what="both attempts")

    assert ran == ["labelled"] * 2


@pytest.mark.parametrize("shared", [False, True])
async def test_nothing_is_stranded_where_all_kinds_are_mixed(engine: AnyEngine, shared: bool) -> None:
    """Labels, shares, jobs without either, several lanes."""
    ran: list[str] = []
    mixed = [
        job(f"{level}", label, "ada" if shared and number % 2 else None, priority=level)
        for level in (0, 5, 3)
        for number, label in enumerate(("gpu", None, "big", None, "gpu"))
    ]
    await engine.arun(store.submit_gated(mixed))

    async with worker_of(engine, noting(ran, "it"), queues={QUEUE: 1}, config=quick(labels="gpu,big")):
        await until(lambda: len(ran) == len(mixed), what="all have run")


async def test_until_it_is_idle_a_worker_runs_what_waits_for_its_labels(engine: AnyEngine) -> None:
    ran: list[str] = []
    await engine.arun(store.submit_gated([job("own"), job("others", "big")]))
    worker = worker_of(engine, noting(ran, "it"), config=quick(labels="gpu"))

    await worker.run(until_idle=True)

    assert ran == ["own at it"]


def test_each_lane_has_a_mark_of_its_own_and_those_of_labels_come_first() -> None:
    view = QueueView(QUEUE, 1.0)
    lanes = [
        QueueLane(5, 700),
        QueueLane(5, 900, OWN),
        QueueLane(7, 950),
        QueueLane(5, 1, f"suspect:{OWN}"),
        QueueLane(5, 1, "suspect:"),
    ]
    view.swept(lanes, 1000, 0.0)
    assert view.marks() == [Mark(7, 949, NIL), Mark(5, 899, NIL, OWN), Mark(5, 699, NIL)]
    assert view.suspects.due_at is not None
    assert [mark.lane for mark in view.suspects.marks()] == [f"suspect:{OWN}", "suspect:"]


def test_a_hint_of_a_label_lowers_the_mark_of_its_lane() -> None:
    view = QueueView(QUEUE, 1.0)
    view.swept([QueueLane(5, 900)], 1000, 0.0)
    view.hint(5, 800, OWN)
    assert view.marks() == [Mark(5, 799, NIL, OWN), Mark(5, 899, NIL)]
    view.swept([QueueLane(5, 900)], 1000, time.monotonic())
    assert view.marks() == [Mark(5, 899, NIL)]


def test_a_hint_of_a_suspect_asks_for_a_look() -> None:
    view = QueueView(QUEUE, 60.0)
    view.swept([], 1000, time.monotonic())
    assert not view.wants_sweep(time.monotonic())
    view.hint(5, 800, "suspect:")
    assert view.wants_sweep(time.monotonic()) and not view.has_more
