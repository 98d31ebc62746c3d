"""A person's word, a pause, is never in a row that code or a list takes away."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fencerow import App
from fencerow.config import Config
from fencerow.core.finding import Level
from fencerow.schedules.checks import examine_schedules
from fencerow.schedules.definitions import RowOrigin
from fencerow.testing.clock import DatabaseClock
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine


@pytest.fixture
async def app(engine: AnyEngine) -> AsyncIterator[App]:
    made = app_on(engine)

    @made.job(name="deal")
    async def deal(provider: str = "all") -> None: ...

    yield made
    await made.aclose()


def follow(app: App, *providers: str) -> list[str]:
    """Declare a schedule that follows this list; the list may be changed."""
    listed = list(providers)
    app.schedule(app.jobs["deal"], interval_s=60, entities=lambda: listed)
    return listed


async def step(app: App) -> None:
    await app.schedules.areconcile()
    await app.schedules.arefresh("deal")


async def pauses(app: App) -> dict[str, str | None]:
    """Why each row is paused; those that are not paused are left out."""
    listed = await app.schedules.alisted(entities=True)
    return {each.full_name: each.pause_reason for each in listed if each.paused_at_us is not None}


async def test_a_schedule_that_comes_back_is_still_paused(app: App, clock: DatabaseClock) -> None:
    app.schedule(app.jobs["deal"], "nightly", interval_s=60)
    await app.schedules.areconcile()
    await app.schedules.apause("nightly", reason="legal hold")
    declared = dict(app._declarations().all)

    app._declarations().all.clear()
    without = await app.schedules.areconcile()
    again = await app.schedules.areconcile()
    (kept,) = await app.schedules.alisted()
    (told,) = [each for each in examine_schedules(app.client.engine, Config()) if each.level is Level.INFO]
    app._declarations().all.update(declared)
    await app.schedules.areconcile()

    assert (without.paused, without.removed, again.paused) == (["nightly"], [], [])
    assert kept.undeclared_at_us is not None and "nightly" in told.found
    clock.advance(120)
    assert await app.schedules.atick() == []
    back = await app.schedules.aget("nightly")
    assert (back.pause_reason, back.undeclared_at_us) == ("legal hold", None)


async def test_an_entity_that_comes_back_is_still_paused(app: App) -> None:
    listed = follow(app, "f01", "f02", "f03")
    await step(app)
    await app.schedules.apause("deal", "f01", reason="by law")

    listed.remove("f01")
    done = await app.schedules.arefresh("deal")
    listed.append("f01")
    await app.schedules.arefresh("deal")

    assert (done.removed, done.paused) == ([], ["f01"])
    assert await pauses(app) == {"deal/f01": "by law"}


async def test_the_pause_of_an_entity_outlives_its_schedule(app: App) -> None:
    follow(app, "f01", "f02")
    await step(app)
    await app.schedules.apause("deal", "f01", reason="by law")
    declared = dict(app._declarations().all)

    app._declarations().all.clear()
    assert (await app.schedules.areconcile()).paused == ["deal/f01"]
    app._declarations().all.update(declared)
    await step(app)

    assert await pauses(app) == {"deal/f01": "by law"}


async def test_who_resumes_all_resumes_what_was_paused_with_all(app: App, clock: DatabaseClock) -> None:
    follow(app, "before", "after", "free")
    await step(app)

    await app.schedules.apause("deal", "before", reason="contract ended")
    await app.schedules.apause("deal", reason="maintenance")
    await app.schedules.apause("deal", "after", reason="moves house")
    assert await app.schedules.aresume("deal", run_now=True) == 2

    assert await pauses(app) == {"deal/before": "contract ended", "deal/after": "moves house"}
    assert [each.entity for each in await app.schedules.aticks("deal")] == ["free"]
    assert await app.schedules.aresume("deal", "before") == 1


async def test_what_is_resumed_and_declared_no_longer_goes(app: App, clock: DatabaseClock) -> None:
    listed = follow(app, "f01", "f02")
    await step(app)
    await app.schedules.apause("deal", "f01")
    await app.schedules.apause("deal", "f02")
    listed[:] = ["f02", "f03"]
    await app.schedules.arefresh("deal")
    clock.advance(3600)

    assert await app.schedules.aresume("deal", "f01") == 1

    assert await pauses(app) == {"deal/f02": None}
    made = {each.entity for each in await app.schedules.aticks("deal")}
    assert "f01" not in made
    rows = await app.schedules.alisted(entities=True)
    assert [each.full_name for each in rows] == ["deal", "deal/f02", "deal/f03"]


async def test_a_list_that_is_cut_short_removes_nothing_unless_somebody_says_so(app: App) -> None:
    listed = follow(app, "f01", "f02", "f03", "f04")
    await step(app)

    listed[:] = ["f02", "new"]
    done = await app.schedules.arefresh("deal")
    head = await app.schedules.aget("deal")
    assert (done.made, done.removed, done.missing) == (["new"], [], ["f01", "f03", "f04"])
    assert "lacks 3 of 4 entities at once" in str(head.trouble)
    told = await app.schedules.arefresh("deal", shrinks=True)

    assert (told.removed, told.missing) == (["f01", "f03", "f04"], [])
    assert (await app.schedules.aget("deal")).trouble is None
    assert {each.origin for each in await app.schedules.alisted(entities=True)} == {RowOrigin.CODE}


def test_a_list_is_refreshed_without_an_event_loop_too(engine: AnyEngine) -> None:
    app = app_on(engine)

    @app.job(name="deal")
    def deal(provider: str) -> None: ...

    async def listed() -> list[str]:
        return ["f01"]

    app.schedule(deal, interval_s=60, entities=listed)
    app.schedules.reconcile()

    assert app.schedules.refresh("deal").made == ["f01"]
    app.close()
