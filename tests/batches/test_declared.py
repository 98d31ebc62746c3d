"""Batch jobs as an application declares, submits and awaits them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from fencerow import App, Job, JobFailed, KeyConflict
from fencerow.batches import BatchItem
from fencerow.errors import DeclarationError, InvalidArguments


@dataclass
class Mail:
    to: str


async def test_each_job_is_submitted_and_awaited_alone(app: App) -> None:
    @app.batch_job(batch_max=10, queue="mail", timeout_s=60)
    async def send(items: Sequence[BatchItem[Mail, str]]) -> None:
        for item in items:
            if item.value.to == "nobody":
                item.fail("no such address")
            else:
                item.succeed(f"sent {item.value.to}")

    handles = await send.asubmit_many(send.call(Mail(to)) for to in ("ada", "nobody", "bob"))
    async with app.worker():
        assert await handles[0].aresult(60) == "sent ada"
        with pytest.raises(JobFailed, match="no such address"):
            await handles[1].aresult(60)
        assert await handles[2].aresult(60) == "sent bob"


async def test_a_key_is_that_of_one_job(app: App) -> None:
    sizes: list[int] = []

    @app.batch_job
    def send(items: Sequence[BatchItem[Mail, str]]) -> None:
        sizes.append(len(items))
        for item in items:
            item.succeed(item.value.to)

    first = await send.using(key="k").asubmit(Mail("ada"))
    again = await send.using(key="k").asubmit(Mail("ada"))
    with pytest.raises(KeyConflict):
        await send.using(key="k").asubmit(Mail("bob"))
    async with app.worker():
        assert await again.aresult(60) == "ada"

    assert (again.id, again.replay, sizes) == (first.id, True, [1])


async def test_options_of_one_submit_count_for_that_job(app: App) -> None:
    @app.batch_job(attempts_max=5)
    async def send(items: Sequence[BatchItem[int, None]]) -> None:
        raise TimeoutError("the provider is away")

    handle = await send.using(attempts_max=1).asubmit(1)
    async with app.worker():
        with pytest.raises(JobFailed):
            await handle.aresult(60)
    assert (await handle.arefresh()).failures == 1


async def test_a_job_is_submitted_by_name_with_its_value(app: App) -> None:
    @app.batch_job
    def send(items: Sequence[BatchItem[Mail, str]]) -> None:
        for item in items:
            item.succeed(item.value.to)

    handle = await app.asubmit_by_name("send", {"value": {"to": "ada"}})
    with pytest.raises(InvalidArguments):
        await app.asubmit_by_name("send", {"value": {"to": 3}})
    async with app.worker():
        assert await handle.aresult(60) == "ada"


async def test_single_jobs_and_batches_share_a_worker(app: App) -> None:
    @app.batch_job
    async def many(items: Sequence[BatchItem[int, int]]) -> None:
        for item in items:
            item.succeed(-item.value)

    @app.job
    async def one(job: Job, n: int) -> int:
        return n

    handles = [await (many if n % 2 else one).asubmit(n) for n in range(20)]
    async with app.worker(slots=2):
        results = await asyncio.gather(*(handle.aresult(60) for handle in handles))

    assert results == [-n if n % 2 else n for n in range(20)]


async def test_batches_have_middleware_of_their_own(app: App) -> None:
    wrapped: list[Any] = []

    @app.on_run
    async def note(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        wrapped.append(job.name)
        return await call_next()

    @app.on_batch
    async def note_batch(
        items: Sequence[BatchItem[Any, Any]], call_next: Callable[[], Awaitable[None]]
    ) -> None:
        wrapped.append([(item.name, item.value, item.metadata["tenant"]) for item in items])
        await call_next()

    @app.batch_job
    async def many(items: Sequence[BatchItem[int, None]]) -> None: ...

    @app.job
    async def one() -> None: ...

    async with app.worker():
        await (await many.using(metadata={"tenant": "a"}).asubmit(1)).aresult(60)
        await (await one.asubmit()).aresult(60)

    assert wrapped == [[("many", 1, "a")], "one"]


@pytest.mark.parametrize("both", [True, False])
def test_a_worker_says_when_batches_run_without_the_middleware_of_the_others(
    lite_app: App, caplog: pytest.LogCaptureFixture, both: bool
) -> None:
    @lite_app.on_run
    async def note(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        return await call_next()

    if both:

        @lite_app.on_batch
        async def note_batch(
            items: Sequence[BatchItem[Any, Any]], call_next: Callable[[], Awaitable[None]]
        ) -> None:
            await call_next()

    @lite_app.batch_job
    async def many(items: Sequence[BatchItem[int, None]]) -> None: ...

    lite_app.worker()

    warned = [each.levelno for each in caplog.records if "many run without either" in each.getMessage()]
    assert warned == ([] if both else [logging.WARNING])


def test_a_value_that_does_not_fit_is_refused_at_the_submit(lite_app: App) -> None:
    @lite_app.batch_job
    def send(items: Sequence[BatchItem[Mail, str]]) -> None: ...

    with pytest.raises(InvalidArguments):
        send.call("ada")  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments):
        send.call()  # type: ignore[call-arg]
    lite_app.close()


def test_what_a_batch_handler_cannot_be(lite_app: App) -> None:
    def bare(items): ...  # type: ignore[no-untyped-def]
    def listed(items: list[BatchItem[int, str]]) -> None: ...
    def values(items: Sequence[int]) -> None: ...
    def untyped(items: Sequence[BatchItem]) -> None: ...  # type: ignore[type-arg]
    def two(items: Sequence[BatchItem[int, str]], more: int) -> None: ...
    def none() -> None: ...
    def starred(*items: Sequence[BatchItem[int, str]]) -> None: ...
    def generator(items: Sequence[BatchItem[int, str]]) -> Any:
        yield 1

    def returns(items: Sequence[BatchItem[int, str]]) -> list[str]:
        return []

    def unstorable(items: Sequence[BatchItem[App, str]]) -> None: ...

    for function in (bare, listed, values, untyped, two, none, starred, generator, returns, unstorable):
        with pytest.raises(DeclarationError):
            lite_app.batch_job(function)  # type: ignore[arg-type]
    for size in (0, 1001, True, "3"):
        with pytest.raises(DeclarationError, match="batch_max"):
            lite_app.batch_job(batch_max=size)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="write @app"):
        lite_app.batch_job(3)  # type: ignore[call-overload]
    assert lite_app.jobs == {}


def test_a_name_is_taken_once_by_whatever_takes_it(lite_app: App) -> None:
    @lite_app.job(name="send")
    def one() -> None: ...

    with pytest.raises(DeclarationError, match="is taken"):

        @lite_app.batch_job(name="send")
        def many(items: Sequence[BatchItem[int, None]]) -> None: ...
