"""One entity that cannot be used is left out and named; the others are made, changed and removed all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fencerow import App
from fencerow.schedules import Entity
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S
from tests.schedules.test_beside import chores_of, told


@pytest.fixture
async def app(engine: AnyEngine) -> AsyncIterator[App]:
    made = app_on(engine, entities_refresh_s=1.0)

    def key(user: str) -> str:
        return {"none": ""}.get(user, user) or str(1 / 0)

    @made.job(name="digest", exclusive=key)
    async def digest(user: str) -> None: ...

    yield made
    await made.aclose()


def follow(app: App, *users: Any) -> list[Any]:
    listed = list(users)
    app.schedule(app.jobs["digest"], interval_s=3600, entities=lambda: listed)
    return listed


def on_mars(name: str) -> Entity:
    return Entity(name, when={"cron": "0 6 * * *", "tz": "Mars/Phobos"})


async def test_the_others_are_made_changed_and_removed(app: App) -> None:
    listed = follow(app, "ada", "bob", "eve")
    await app.schedules.areconcile()
    await app.schedules.arefresh("digest")
    before = await app.schedules.aget("digest", "bob")

    listed[:] = ["ada", on_mars("bob"), "new", "new", "none"]
    done = await app.schedules.arefresh("digest")

    assert (done.removed, done.made, set(done.invalid)) == (["eve"], [], {"bob", "new", "none"})
    assert (await app.schedules.aget("digest", "bob")).digest == before.digest
    head = await app.schedules.aget("digest")
    assert "3 of 5: 'bob': no time zone 'Mars/Phobos'" in str(head.trouble)
    listed[:] = ["ada", "bob"]
    assert (await app.schedules.arefresh("digest")).trouble is None
    assert (await app.schedules.aget("digest")).trouble is None


@pytest.mark.parametrize("nameless", ["", 5, None])
async def test_a_member_without_a_name_may_stand_for_any_row(app: App, nameless: Any) -> None:
    listed = follow(app, "ada", "bob")
    await app.schedules.areconcile()
    await app.schedules.arefresh("digest")

    listed[:] = ["ada", nameless, "eve"]
    done = await app.schedules.arefresh("digest")

    assert (done.made, done.removed) == (["eve"], [])
    assert "no row was removed" in str(done.trouble)


async def test_a_worker_says_which_one_and_makes_the_others(app: App) -> None:
    follow(app, "ada", on_mars("bob"))
    _, declared = chores_of(app)

    async with asyncio.timeout(PATIENCE_S):
        while "digest/ada" not in await told(app):
            await declared.tick()
    await declared.end(PATIENCE_S)

    assert "'bob': no time zone" in (await told(app))["digest"]
