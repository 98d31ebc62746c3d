"""What a handler had in memory when it failed goes with its end, and does not wait for the garbage collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from fencerow import App, Config
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import JobFailed
from tests.cli.conftest import url_of
from tests.kit.pace import PATIENCE_S


class Large:
    """What a handler has."""


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("name", ["at_once", "after_a_wait", "plain"])
async def test_what_a_failed_handler_had_is_gone_with_it(
    engine: SqliteEngine | PostgresEngine, name: str
) -> None:
    app = App(config=Config(url=url_of(engine)))
    had: list[ref[Large]] = []

    @app.job(name="at_once")
    async def at_once() -> None:
        had.append(ref(large := Large()))
        raise ValueError(large)

    @app.job(name="after_a_wait")
    async def after_a_wait() -> None:
        had.append(ref(large := Large()))
        waited = asyncio.get_running_loop().create_future()
        waited.get_loop().call_soon(waited.set_exception, ValueError(large))
        try:
            await waited
        finally:
            del waited

    @app.job(name="plain")
    def plain() -> None:
        had.append(ref(large := Large()))
        raise ValueError(large)

    async with app, app.worker(slots=1):
        handle = await app.jobs[name].asubmit()
        with pytest.raises(JobFailed):
            await handle.aresult(timeout_s=PATIENCE_S)
    assert had[0]() is None
