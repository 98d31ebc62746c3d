"""Sync verbs inside a running event loop are refused before they wait, with the name of what to write instead."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fencerow import App, Config
from fencerow.core.worker.context import Job
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import BlockingCall
from fencerow.guards.mutex import Mutex
from fencerow.guards.once import DedupeWindow, once
from tests.cli.conftest import url_of

AnyEngine = SqliteEngine | PostgresEngine


async def double(n: int) -> int:
    return 2 * n


@pytest.fixture
async def app(engine: AnyEngine) -> AsyncIterator[App]:
    made = App(config=Config(url=url_of(engine)))
    made.job(double)
    yield made
    await made.aclose()


VERBS: dict[str, tuple[Callable[[App, Any], Any], str]] = {
    "submit": (lambda app, _: app.jobs["double"].submit(1), "asubmit"),
    "submit_many": (
        lambda app, _: app.jobs["double"].submit_many([app.jobs["double"].call(1)]),
        "asubmit_many",
    ),
    "result": (lambda _, handle: handle.result(timeout_s=5), "aresult"),
    "a look": (lambda _, handle: handle.result(timeout_s=0), "aresult"),
    "status": (lambda _, handle: handle.status(), "astatus"),
    "cancel": (lambda _, handle: handle.cancel(), "acancel"),
    "get": (lambda app, handle: app.client.get(handle.id), "aget"),
    "workers": (lambda app, _: app.client.workers.registered(), "aregistered"),
    "mutex": (lambda app, _: Mutex(app, "k").acquire(), "aacquire"),
    "with mutex": (lambda app, _: Mutex(app, "k").__enter__(), "async with"),
    "once": (lambda app, _: once(app, "k").__enter__(), "async with"),
    "window": (lambda app, _: DedupeWindow(app, "w", window_s=5).admit("k", "v"), "aadmit"),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_sync_verb_names_its_twin(app: App, verb: str) -> None:
    handle = await app.jobs["double"].asubmit(1)
    call, twin = VERBS[verb]
    with pytest.raises(BlockingCall, match=twin):
        call(app, handle)

    assert await handle.astatus() == "queued", "nothing was done"
    assert len(await app.client.alist_jobs()) == 1, "nothing was stored"


async def test_a_thread_of_the_same_program_may_use_them(app: App) -> None:
    handle = await asyncio.to_thread(app.jobs["double"].submit, 1)

    assert await asyncio.to_thread(handle.status) == "queued"


async def test_a_plain_handler_may_use_them_and_an_async_one_may_not(app: App) -> None:
    seen: list[str] = []

    @app.job
    def plain() -> str:
        return app.jobs["double"].submit(1).id

    @app.job
    async def mistaken() -> int:
        try:
            app.jobs["double"].submit(1).result()
            return 1
        except BlockingCall as error:
            seen.append(str(error))
            raise

    async with app.worker():
        assert await (await plain.asubmit()).aresult(60)
        with pytest.raises(Exception, match="FR-207"):
            await (await mistaken.using(attempts_max=1).asubmit()).aresult(60)

    assert "asubmit" in seen[0]


async def test_a_borrowed_sync_connection_is_the_callers_own_affair(
    lite: SqliteEngine, app: App, request: pytest.FixtureRequest
) -> None:
    """`job.transaction()` lends an async handler one on SQLite."""
    if app.engine.dialect != "sqlite":
        pytest.skip("on PostgreSQL it lends an async one")

    @app.job
    async def both(job: Job) -> None:
        async with job.transaction() as connection:
            assert isinstance(connection, sqlite3.Connection)
            app.jobs["double"].using(connection=connection).submit(1)

    async with app.worker():
        await (await both.asubmit()).aresult(60)

    assert len(await app.client.alist_jobs()) == 2
