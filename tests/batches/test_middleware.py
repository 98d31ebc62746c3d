"""What wraps the call of a batch handler: it sees the items, and its errors are the handler's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import pytest

from fencerow.batches.item import BatchItem
from tests.batches.test_batches import ONE_SLOT, Numbers, Quiet, batch, run_together, states
from tests.core.worker.stage import quick, working
from tests.kit.jobs import AnyEngine

Items = Sequence[BatchItem[Any, Any]]
CallNext = Callable[[], Awaitable[None]]
tone: ContextVar[str] = ContextVar("tone", default="none")


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_it_wraps_one_call_with_all_its_items(engine: AnyEngine, plain: bool) -> None:
    order: list[Any] = []

    async def outer(items: Items, call_next: CallNext) -> None:
        order.append([(item.name, item.value, item.attempt) for item in items])
        tone.set("of the outer one")
        await call_next()
        order.append("outer done")

    async def inner(items: Items, call_next: CallNext) -> None:
        order.append("inner")
        await call_next()

    def send(items: Quiet) -> None:
        order.append(tone.get())
        tone.set("of the handler")

    async def asend(items: Quiet) -> None:
        send(items)

    handler = replace(batch(send if plain else asend), name="send")
    async with working(engine, handler, queues=ONE_SLOT, batch_middleware=[outer, inner]) as stage:
        jobs = await run_together(stage, handler, [1, 2])
        await run_together(stage, handler, [3])

    assert states(jobs) == ["succeeded"] * 2
    once = ["inner", "of the outer one", "outer done"]
    assert order == [[("send", 1, 1), ("send", 2, 1)], *once, [("send", 3, 1)], *once]
    assert tone.get() == "none"


async def test_middleware_of_single_runs_is_not_called_for_a_batch(lite: AnyEngine) -> None:
    called: list[str] = []

    async def single(job: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:
        called.append(job.name)
        return await call_next()

    async def many(items: Quiet) -> None: ...

    async def one() -> None: ...

    handler = batch(many)
    async with working(lite, handler, one, queues=ONE_SLOT, middleware=[single]) as stage:
        await run_together(stage, handler, [1])
        await stage.run("one")

    assert called == ["one"]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_its_error_before_the_call_judges_every_item(engine: AnyEngine, plain: bool) -> None:
    called: list[int] = []

    async def no_session(items: Items, call_next: CallNext) -> None:
        if items[0].attempt == 1:
            raise OSError("the pool of sessions is empty")
        await call_next()

    def send(items: Quiet) -> None:
        called.append(len(items))

    async def asend(items: Quiet) -> None:
        send(items)

    handler = replace(batch(send if plain else asend), name="send")
    async with working(engine, handler, queues=ONE_SLOT, batch_middleware=[no_session]) as stage:
        jobs = await run_together(stage, handler, [1, 2])
        dead = await run_together(stage, handler, [3], attempts_max=1)

    assert sum(called) == 2
    assert [(job.state, job.attempt, job.failures) for job in jobs] == [("succeeded", 2, 1)] * 2
    assert (dead[0].state, dead[0].error["message"]) == ("failed", "the pool of sessions is empty")


async def test_its_error_after_the_call_judges_what_was_not_decided(lite: AnyEngine) -> None:
    async def commit_fails(items: Items, call_next: CallNext) -> None:
        await call_next()
        raise OSError("the commit failed")

    async def send(items: Quiet) -> None:
        items[0].succeed(None)

    handler = batch(send)
    async with working(lite, handler, queues=ONE_SLOT, batch_middleware=[commit_fails]) as stage:
        jobs = await run_together(stage, handler, [1, 2], attempts_max=1)

    assert states(jobs) == ["succeeded", "failed"]
    assert jobs[1].error["message"] == "the commit failed"


async def test_it_sees_the_handlers_error_and_may_decide_items_itself(lite: AnyEngine) -> None:
    seen: list[str] = []

    async def parks(items: Items, call_next: CallNext) -> None:
        try:
            await call_next()
        except ConnectionError as error:
            seen.append(str(error))
            for item in items:
                if not item.failures:
                    item.retry(0, "the provider is away")

    async def send(items: Quiet) -> None:
        if not items[0].failures:
            raise ConnectionError("refused")

    handler = batch(send)
    async with working(lite, handler, queues=ONE_SLOT, batch_middleware=[parks]) as stage:
        jobs = await run_together(stage, handler, [1, 2])

    assert seen == ["refused"]
    assert [(job.state, job.attempt, job.failures) for job in jobs] == [("succeeded", 2, 1)] * 2


async def test_one_that_calls_nothing_leaves_the_items_to_succeed_where_none_is_a_result(
    lite: AnyEngine,
) -> None:
    async def skips(items: Items, call_next: CallNext) -> None: ...

    async def send(items: Quiet) -> None:
        raise AssertionError("it was skipped")

    async def says(items: Numbers) -> None:
        raise AssertionError("it was skipped")

    quiet, numbers = batch(send), batch(says)
    async with working(lite, quiet, numbers, queues=ONE_SLOT, batch_middleware=[skips]) as stage:
        fine = await run_together(stage, quiet, [1])
        other = await run_together(stage, numbers, [1], attempts_max=1)

    assert (states(fine), states(other)) == (["succeeded"], ["failed"])


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_the_end_of_the_call_passes_through_it(lite: AnyEngine, plain: bool) -> None:
    cleaned: list[str] = []

    async def session(items: Items, call_next: CallNext) -> None:
        try:
            await call_next()
        finally:
            await asyncio.sleep(0)
            cleaned.append("closed")

    def busy(items: Quiet) -> None:
        while True:
            pass

    async def asleep(items: Quiet) -> None:
        await asyncio.sleep(60)

    handler = replace(batch(busy if plain else asleep), name="send")
    async with working(lite, handler, queues=ONE_SLOT, batch_middleware=[session]) as stage:
        jobs = await run_together(stage, handler, [1, 2], timeout_s=0.2, attempts_max=1)

    assert cleaned == ["closed"]
    assert {job.error["type"] for job in jobs} == {"fencerow.errors.AttemptTimeout"}


async def test_one_that_hangs_is_given_up_with_the_call(lite: AnyEngine) -> None:
    free = asyncio.Event()

    async def hangs(items: Items, call_next: CallNext) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async def send(items: Quiet) -> None: ...

    handler = batch(send)
    async with working(
        lite, handler, queues=ONE_SLOT, batch_middleware=[hangs], config=quick(cancel_kill_s=0.2)
    ) as stage:
        jobs = await run_together(stage, handler, [1, 2], timeout_s=0.2, attempts_max=1)
        assert stage.worker._parts.dispatch.hung_count == 1
        free.set()

    assert {job.error["type"] for job in jobs} == {"fencerow.errors.AttemptTimeout"}
