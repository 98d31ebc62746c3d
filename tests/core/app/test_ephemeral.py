"""Ephemeral jobs as their users meet them: the failures stay, the successes are gone, who waits is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from fencerow import App, Fail, JobFailed, JobGone
from fencerow.core.model.state import State
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import DeclarationError, InvalidInput
from tests.core.store.stage import rows


def awaited(app: App) -> bool:
    """Whether the one job is marked as one for which somebody waits."""
    engine = app.engine
    assert isinstance(engine, SqliteEngine | PostgresEngine)
    return bool(rows(engine, "SELECT awaited FROM {jobs}")[0]["awaited"])


async def test_only_its_failure_stays(app: App) -> None:
    @app.job(ephemeral=True)
    def measure(fails: bool) -> int:
        if fails:
            raise Fail("no sensor")
        return 7

    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def heard(name: str, facts: Mapping[str, object]) -> None:
        if name == "succeeded":
            loop.call_soon_threadsafe(done.set)

    app.telemetry.listen(heard)
    async with app.worker():
        good, bad = await measure.asubmit(False), await measure.asubmit(True)
        with pytest.raises(JobFailed, match="no sensor"):
            await bad.aresult(60)
        await asyncio.wait_for(done.wait(), 10)
        with pytest.raises(JobGone, match="ephemeral"):
            await good.aresult(60)
        assert await bad.astatus() is State.FAILED
        with pytest.raises(JobGone, match="left nothing to revive"):
            await good.arevive()


async def test_who_waits_before_its_end_gets_the_result(app: App) -> None:
    gate = asyncio.Event()

    @app.job
    async def slow() -> int:
        await gate.wait()
        return 7

    handle = await slow.using(ephemeral=True).asubmit()
    waiting = asyncio.create_task(handle.aresult(60))
    while not await asyncio.to_thread(awaited, app):
        pass
    async with app.worker():
        gate.set()
        assert await waiting == 7


def test_it_is_yes_or_no(lite_app: App) -> None:
    with pytest.raises(DeclarationError, match="ephemeral"):

        @lite_app.job(ephemeral="yes")  # type: ignore[call-overload, arg-type, untyped-decorator, unused-ignore]
        def wrong() -> None: ...

    @lite_app.job
    def right() -> None: ...

    with pytest.raises(InvalidInput, match="ephemeral"):
        right.using(ephemeral=1)  # type: ignore[arg-type]
