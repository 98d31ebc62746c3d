from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from fencerow import App, Job, JobFailed
from fencerow.app import Draft
from fencerow.core.telemetry import Fact
from fencerow.errors import InvalidInput


async def test_submit_middleware_adds_what_travels_with_the_job(app: App) -> None:
    order: list[str] = []

    @app.on_submit
    def outer(draft: Draft) -> Iterator[None]:
        order.append(f"outer {draft.name} {draft.queue} {draft.key}")
        draft.headers["correlation-id"] = "c-1"
        yield
        order.append("outer done")

    @app.on_submit
    def inner(draft: Draft) -> Iterator[None]:
        order.append(f"inner {draft.headers['correlation-id']}")
        draft.tags.append("seen")
        draft.metadata["by"] = "inner"
        yield
        order.append("inner done")

    @app.job
    def work(n: int) -> int:
        return n

    handle = await work.using(key="k", headers={"a": "b"}).asubmit(1)

    job = await handle.arefresh()
    assert job.headers == {"a": "b", "correlation-id": "c-1"}
    assert (job.tags, job.metadata) == (["seen"], {"by": "inner"})
    assert order == ["outer work default k", "inner c-1", "inner done", "outer done"]


async def test_an_error_before_the_yield_reaches_the_caller_and_nothing_is_stored(app: App) -> None:
    @app.on_submit
    def refuse(draft: Draft) -> Iterator[None]:
        if draft.name == "work":
            raise PermissionError("not today")
        yield

    @app.job
    def work() -> None: ...

    with pytest.raises(PermissionError):
        work.submit()
    with pytest.raises(PermissionError):
        await work.asubmit_many([work.call()])

    assert await app.client.alist_jobs() == []


async def test_what_middleware_leaves_is_checked_like_the_rest(app: App) -> None:
    codes: list[str] = []
    app.telemetry.listen(lambda name, facts: codes.append(facts["code"]) if name == Fact.REFUSED else None)

    @app.on_submit
    def spoil(draft: Draft) -> Iterator[None]:
        draft.headers["x"] = "a\nb"
        yield

    @app.job
    def work() -> None: ...

    with pytest.raises(InvalidInput):
        await work.asubmit()

    assert codes == ["FR-201"]
    assert await app.client.alist_jobs() == []


async def test_middleware_sees_the_error_of_the_submit(app: App) -> None:
    seen: list[str] = []

    @app.on_submit
    def watch(draft: Draft) -> Iterator[None]:
        try:
            yield
        except InvalidInput as error:
            seen.append(error.code)
            raise

    @app.job
    def work(n: int) -> None: ...

    await work.using(key="k").asubmit(1)
    with pytest.raises(InvalidInput):
        await work.using(key="k").asubmit(2)

    assert seen == ["FR-206"]


async def test_run_middleware_wraps_the_handler(app: App) -> None:
    order: list[str] = []

    @app.on_run
    async def outer(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        order.append(f"outer {job.name}")
        return await call_next()

    @app.on_run
    async def inner(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        order.append("inner")
        return await call_next()

    @app.job
    def work(n: int) -> int:
        order.append("work")
        return n + 1

    async with app.worker():
        assert await (await work.asubmit(1)).aresult(60) == 2
    assert order == ["outer work", "inner", "work"]


async def test_an_error_in_run_middleware_is_the_attempts_failure(app: App) -> None:
    @app.on_run
    async def broken(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        raise LookupError("no tenant")

    @app.job(attempts_max=1)
    def work() -> None: ...

    async with app.worker():
        with pytest.raises(JobFailed, match="no tenant"):
            await (await work.asubmit()).aresult(60)
