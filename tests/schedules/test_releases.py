"""Of two releases of a program the newer counts, whichever started last; where nobody knows which, it is said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from fencerow import App
from fencerow.config import Config
from fencerow.core.finding import Level
from fencerow.schedules.checks import examine_schedules
from fencerow.testing.clock import clock_of
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine
from tests.schedules.test_beside import chores_of, told

Release = Callable[..., App]


@pytest.fixture
async def release(engine: AnyEngine) -> AsyncIterator[Release]:
    made: list[App] = []

    def make(interval_s: int, *names: str, entities: list[str], version: int = 1) -> App:
        app = app_on(engine, schedules_version=version, entities_refresh_s=1.0)
        made.append(app)

        @app.job(name="check")
        async def check(place: str = "all") -> None: ...

        for name in names:
            app.schedule(check, name, interval_s=interval_s)
        app.schedule(check, "many", interval_s=interval_s, entities=lambda: entities)
        return app

    yield make
    for each in made:
        await each.aclose()


async def intervals(app: App) -> dict[str, float]:
    listed = await app.schedules.alisted(entities=True)
    return {each.full_name: each.document()["when"]["interval_s"] for each in listed}


async def test_an_older_one_that_starts_late_takes_nothing_back(release: Release) -> None:
    old = release(60, "kept", "gone", entities=["a"], version=4)
    new = release(120, "kept", entities=["a", "b"], version=5)
    for each in (old, new):
        await each.schedules.areconcile()
        await each.schedules.arefresh("many")
    before = await intervals(new)

    late = await old.schedules.areconcile()
    stale = await old.schedules.arefresh("many")

    assert (late.newer, late.changed, stale.is_stale) == (5, [], True)
    assert await intervals(new) == before == {"kept": 120, "many": 120, "many/a": 120, "many/b": 120}
    back = await old.schedules.areconcile(take_back=True)
    assert (back.made, back.changed, back.newer) == (["gone"], ["kept", "many"], None)


async def test_two_of_one_version_are_told_of_by_whom_does_not_count(
    release: Release, caplog: pytest.LogCaptureFixture
) -> None:
    new = release(120, "kept", entities=["a", "b"])
    _, declared = chores_of(new)
    await declared.tick()
    assert (await declared.tick()) > 0 and not warnings(new)

    await release(60, "kept", entities=["a"]).schedules.areconcile()
    clock_of(new.client.engine).advance(600)
    for _ in range(2):
        await declared.tick()

    assert "schedules declared otherwise" in warnings(new)
    assert "declares schedules otherwise" in (await told(new))["many"]
    assert sum("declares schedules otherwise" in each for each in caplog.messages) == 1
    await new.schedules.areconcile()
    assert "schedules declared otherwise" not in warnings(new)
    assert (await told(new))["many"] == ""


async def test_a_newer_one_is_no_contradiction(release: Release, caplog: pytest.LogCaptureFixture) -> None:
    old = release(60, entities=["a"])
    _, declared = chores_of(old)
    await declared.tick()

    await release(120, entities=["a"], version=2).schedules.areconcile()
    await declared.tick()

    assert not warnings(old) and not caplog.messages


def warnings(app: App) -> list[str]:
    found = examine_schedules(app.client.engine, Config())
    return [each.name for each in found if each.level is Level.WARN]
