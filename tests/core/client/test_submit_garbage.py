"""A submit leaves nothing to the garbage collector, which would stop its caller now and then for milliseconds."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator

import pytest

from fencerow import App, Config
from fencerow.db import wakeups
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import url_of

SUBMITS = 50
MANY = 5


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def one(app: App) -> None:
    await app.jobs["noop"].asubmit(1)


async def among_many(app: App) -> None:
    await asyncio.gather(*(app.jobs["noop"].asubmit(1) for _ in range(MANY)))


async def in_bulk(app: App) -> None:
    await app.asubmit_many([app.jobs["noop"].call(1) for _ in range(MANY)])


WAYS = (one, among_many, in_bulk)


async def leave_no_cycle(
    engine: SqliteEngine | PostgresEngine, submitted: Callable[[App], Awaitable[None]]
) -> None:
    async with App(config=Config(url=url_of(engine))) as app:

        @app.job(name="noop", queue="bench")
        async def noop(number: int) -> None: ...

        await submitted(app)
        await submitted(app)
        await asyncio.to_thread(app.engine.flush, 10)
        gc.collect()
        for _ in range(SUBMITS):
            await submitted(app)
        assert (
            gc.collect() < SUBMITS
        )  # of all threads; one cycle of each submit would be as many objects, and more


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("submitted", WAYS)
async def test_a_submit_to_postgres_leaves_no_cycle(
    pg: PostgresEngine, submitted: Callable[[App], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each takes its wake-up along.
    monkeypatch.setattr(wakeups.WakeupSender, "taken_along", lambda self, given: given)
    await leave_no_cycle(pg, submitted)


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("submitted", WAYS)
async def test_a_submit_to_sqlite_leaves_no_cycle(
    lite: SqliteEngine, submitted: Callable[[App], Awaitable[None]]
) -> None:
    await leave_no_cycle(lite, submitted)


@pytest.mark.usefixtures("uncollected")
def test_a_submit_of_a_thread_leaves_no_cycle(engine: SqliteEngine | PostgresEngine) -> None:
    with App(config=Config(url=url_of(engine))) as app:

        @app.job(name="noop", queue="bench")
        async def noop(number: int) -> None: ...

        noop.submit(1)
        app.engine.flush(10)
        gc.collect()
        for _ in range(SUBMITS):
            noop.submit(1)
        assert gc.collect() < SUBMITS
