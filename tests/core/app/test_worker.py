from __future__ import annotations

import asyncio

import pytest

from fencerow import App, Backoff, Fail, Job, JobFailed
from fencerow.core.telemetry import Fact
from fencerow.errors import DeclarationError, InvalidInput
from tests.kit.pace import PATIENCE_S


async def test_a_submitted_job_runs_and_its_typed_result_comes_back(app: App) -> None:
    @app.job(queue="documents")
    async def extract(job: Job, path: str) -> dict[str, int]:
        await job.progress(50, "reading")
        return {"pages": len(path)}

    @app.job
    def double(n: int) -> int:
        return n * 2

    async with app.worker():
        one, two = await extract.asubmit("abc"), await double.asubmit(4)

        assert await one.aresult(60) == {"pages": 3}
        assert await asyncio.to_thread(two.result, PATIENCE_S) == 8


async def test_a_tuple_comes_back_as_a_tuple(app: App) -> None:
    @app.job
    def pair(n: int) -> tuple[int, frozenset[str]]:
        return n, frozenset({"a"})

    async with app.worker():
        assert await (await pair.asubmit(1)).aresult(60) == (1, frozenset({"a"}))


async def test_a_failure_reaches_the_one_who_waits(app: App) -> None:
    @app.job
    def wrong() -> None:
        raise Fail("no such invoice")

    async with app.worker():
        with pytest.raises(JobFailed, match="no such invoice"):
            await (await wrong.asubmit()).aresult(60)


async def test_a_backoff_given_with_the_submit_is_the_one_that_counts(app: App) -> None:
    delays: asyncio.Queue[float] = asyncio.Queue()
    app.telemetry.listen(
        lambda name, facts: delays.put_nowait(facts["delay_s"]) if name == Fact.RETRIED else None
    )

    @app.job(backoff=Backoff(base_s=7, jitter=0))
    def wrong() -> None:
        raise TimeoutError

    async with app.worker():
        await wrong.using(backoff=Backoff(base_s=77, jitter=0)).asubmit()

        assert await asyncio.wait_for(delays.get(), 10) == 77


async def test_a_replay_gets_the_result_of_the_first(app: App) -> None:
    runs: list[int] = []

    @app.job
    def count() -> int:
        runs.append(1)
        return len(runs)

    async with app.worker():
        first = await count.using(key="k").asubmit()
        assert await first.aresult(60) == 1
        again = await count.using(key="k").asubmit()

        assert again.replay
        assert await again.aresult(60) == 1


async def test_a_worker_serves_the_queues_it_was_given(app: App) -> None:
    @app.job(queue="a")
    def one() -> str:
        return "one"

    @app.job(queue="b")
    def two() -> str:
        return "two"

    first, second = await one.asubmit(), await two.asubmit()
    async with app.worker(["a"], slots=2):
        assert await first.aresult(60) == "one"
    assert (await second.arefresh()).attempt == 0

    async with app.worker({"b": 1}):
        assert await second.aresult(60) == "two"


def test_a_worker_needs_jobs_and_queue_names(lite_app: App) -> None:
    with pytest.raises(DeclarationError, match="no handler for any job"):
        lite_app.worker()

    @lite_app.job
    def work() -> None: ...

    with pytest.raises(InvalidInput):
        lite_app.worker(["a\nb"])
    lite_app.close()
