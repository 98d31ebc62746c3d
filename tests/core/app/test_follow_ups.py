"""`job.submit_next`: what follows a job exists from its success on, once, or never."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fencerow import App, Backoff, Fail, Job
from fencerow.batches import BatchItem
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import DecidedTwice, InvalidInput, JobFailed
from fencerow.limits import Limit

WAIT_S = 60.0


def states(app: App) -> dict[str, int]:
    """How many jobs there are of each name, in whatever state."""
    table = "fencerow_all_jobs" if isinstance(app.engine, SqliteEngine) else "fencerow.all_jobs"
    with app.engine.session() as session:
        cursor: Any = session.connection.execute(f"SELECT name, count(*) FROM {table} GROUP BY name")
        return {str(name): int(count) for name, count in cursor.fetchall()}


def declared(app: App) -> Any:
    @app.job
    async def second(number: int) -> int:
        return number * 2

    return second


@pytest.mark.parametrize("inside", [False, True], ids=["after it", "in job.transaction()"])
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_what_follows_runs_after_the_success(app: App, plain: bool, inside: bool) -> None:
    second = declared(app)
    known: list[bool] = []

    @app.job
    async def first(job: Job, number: int) -> str:
        if inside:
            async with job.transaction():
                return job.submit_next(second.call(number))
        made = job.submit_next(second.call(number))
        known.append(states(app).get("second", 0) > 0)
        return made

    @app.job
    def plain_first(job: Job, number: int) -> str:
        if inside:
            with job.transaction():
                return job.submit_next(second.call(number))
        return job.submit_next(second.call(number))

    async with app.worker(slots=2):
        made = await (await (plain_first if plain else first).asubmit(21)).aresult(WAIT_S)
        assert await app.client.handle(made).aresult(WAIT_S) == 42
    assert not any(known), "it was there before the success"


async def test_an_attempt_that_fails_is_followed_by_nothing(app: App) -> None:
    second = declared(app)
    made: list[str] = []

    @app.job(attempts_max=3, backoff=Backoff(base_s=0.0, jitter=0.0))
    async def first(job: Job) -> int:
        made.append(job.submit_next(second.call(job.attempt)))
        if job.attempt < 3:
            raise RuntimeError("not yet")
        return job.attempt

    @app.job
    async def never(job: Job) -> None:
        job.submit_next(second.call(0))
        raise Fail("no")

    async with app.worker(slots=2):
        await (await first.asubmit()).aresult(WAIT_S)
        assert await app.client.handle(made[2]).aresult(WAIT_S) == 6
        with pytest.raises(JobFailed):
            await (await never.asubmit()).aresult(WAIT_S)
    assert states(app) == {"first": 1, "never": 1, "second": 1}


async def test_a_thousand_follow_one_job_in_one_statement_and_no_more(app: App) -> None:
    second = declared(app)

    @app.job
    async def first(job: Job) -> str:
        for number in range(1_000):
            job.submit_next(second.call(number))
        with pytest.raises(InvalidInput, match="more than 1000 follow-ups"):
            job.submit_next(second.call(0))
        return "done"

    async with app.worker("default", slots=1):
        await (await first.asubmit()).aresult(WAIT_S)
    assert states(app) == {"first": 1, "second": 1_000}


async def test_what_cannot_follow_is_refused_where_it_is_written(app: App) -> None:
    second = declared(app)
    refused: list[str] = []

    @app.job
    async def first(job: Job) -> None:
        wrong: Sequence[Any] = (
            second(1),
            second.using(connection=object()).call(1),
            "second",
        )
        for each in wrong:
            with pytest.raises(InvalidInput) as error:
                job.submit_next(each)
            refused.append(error.value.what)
        with pytest.raises(InvalidInput, match="arguments of an attempt's follow-ups"):
            for _ in range(6):
                job.submit_next(large.call("x" * 900_000))

    @app.job
    async def large(text: str) -> None: ...

    async with app.worker(slots=1):
        handle = await first.asubmit()
        await handle.aresult(WAIT_S)
    told = [" ".join(what.split()[:3]) for what in refused]
    assert told == ["a value of", "a follow-up names", "a value of"]


async def test_a_follow_up_whose_key_is_taken_by_other_work_ends_the_job_and_stores_none(app: App) -> None:
    second = declared(app)
    await second.using(key="k").asubmit(1)

    @app.job
    async def first(job: Job) -> None:
        job.submit_next(second.call(7))
        job.submit_next(second.using(key="k").call(2))

    @app.job
    async def same(job: Job) -> None:
        job.submit_next(second.using(key="k").call(1))

    async with app.worker({"default": 2}):
        with pytest.raises(JobFailed, match="FR-206"):
            await (await first.asubmit()).aresult(WAIT_S)
        await (await same.asubmit()).aresult(WAIT_S)
    assert states(app) == {"first": 1, "same": 1, "second": 1}


async def test_a_follow_up_waits_for_its_turn_and_is_unique(app: App) -> None:
    await app.client.limits.adefine(Limit("one", at_once=1))

    @app.job(exclusive="k", limits="one")
    async def second(number: int) -> int:
        return number

    @app.job(unique=True)
    async def third() -> None: ...

    await third.using(delay_s=3_600).asubmit()

    @app.job
    async def first(job: Job) -> list[str]:
        job.submit_next(third.call())
        return [job.submit_next(second.call(number)) for number in range(3)]

    async with app.worker(slots=3):
        ids = await (await first.asubmit()).aresult(WAIT_S)
        assert [await app.client.handle(each).aresult(WAIT_S) for each in ids] == [0, 1, 2]
    assert states(app) == {"first": 1, "second": 3, "third": 1}


async def test_middleware_of_submits_sees_what_follows(app: App) -> None:
    second = declared(app)

    @app.on_submit
    def tagged(draft: Any) -> Any:
        draft.tags.append("seen")
        yield

    @app.job
    async def first(job: Job) -> str:
        return job.submit_next(second.call(1))

    async with app.worker(slots=1):
        made = await (await first.asubmit()).aresult(WAIT_S)
        await app.client.handle(made).aresult(WAIT_S)
    assert (await app.client.aget(made)).tags == ["seen"]


async def test_items_of_a_batch_are_followed_each_by_its_own(app: App) -> None:
    second = declared(app)
    late: list[type[BaseException]] = []

    @app.batch_job(batch_max=10)
    async def first(items: Sequence[BatchItem[int, str]]) -> None:
        for item in items:
            made = item.submit_next(second.call(item.value))
            if item.value == 2:
                item.fail("no")
                continue
            item.succeed(made)
            with pytest.raises(DecidedTwice) as error:
                item.submit_next(second.call(0))
            late.append(error.type)

    handles = await app.asubmit_many([first.call(number) for number in (1, 2, 3)])
    async with app.worker(slots=2):
        made = [await handles[each].aresult(WAIT_S) for each in (0, 2)]
        with pytest.raises(JobFailed):
            await handles[1].aresult(WAIT_S)
        assert [await app.client.handle(each).aresult(WAIT_S) for each in made] == [2, 6]
    assert late == [DecidedTwice] * 2
    assert states(app)["second"] == 2
