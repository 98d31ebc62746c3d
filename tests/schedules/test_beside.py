"""One schedule that cannot fire, or that is costly to compute, holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from fencerow import App
from fencerow.core.chore import Chore
from fencerow.schedules import chores, ticking
from fencerow.schedules.standing import schedule_chores
from fencerow.testing.clock import DatabaseClock, clock_of
from tests.core.store.stage import rows
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S
from tests.schedules.test_ticks import Put, fired

TABLES = {"postgres": "fencerow.schedules", "sqlite": "fencerow_schedules"}
DAMAGED = {
    "arguments that are no JSON": ('\\"to\\"', "to"),
    "a priority beyond all": ('"priority":0', '"priority":99999'),
    "headers that are no JSON": ('"headers":null', '"headers":"nope"'),
}


@pytest.fixture
async def app(engine: AnyEngine) -> AsyncIterator[App]:
    made = app_on(engine, entities_refresh_s=1.0)
    yield made
    await made.aclose()


def chores_of(app: App) -> list[Chore]:
    made = schedule_chores(
        lambda: app.client, app.config, app.telemetry, app._program, lambda: app.declares_schedules
    )
    return [each.for_worker() for each in made]


@pytest.mark.parametrize("by", ["worker", "verb"])
@pytest.mark.parametrize(("text", "damage"), DAMAGED.values(), ids=DAMAGED)
async def test_a_damaged_row_holds_up_no_other_and_says_why(
    app: App, engine: AnyEngine, put: Put, text: str, damage: str, by: str
) -> None:
    for name in ("broken", "well"):
        put(name)
    table = TABLES[engine.dialect]
    with engine.session() as session:
        session.connection.execute(
            f"UPDATE {table} SET definition = replace(definition, '{text}', '{damage}') WHERE name = 'broken'"
        )
    clock_of(app.client.engine).advance(61.0)
    ticks, _ = chores_of(app)

    await (ticks.tick() if by == "worker" else app.schedules.atick())

    (found,) = await engine.arun(ticking.read_ticks("well", None, 10))
    assert found.job_id is not None
    made = await engine.arun(ticking.read_ticks("broken", None, 10))
    ((trouble,),) = [
        each.values() for each in rows(engine, f"SELECT trouble FROM {table} WHERE name = 'broken'")
    ]
    assert made or trouble, "it fires, or says why not"


def test_what_is_costly_to_decide_is_left_for_the_next_tick(
    engine: AnyEngine, clock: DatabaseClock, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticking, "DECIDE_S", 0.0)
    for name in ("a", "b", "c"):
        put(name)
    clock.advance(61.0)

    assert [len(fired(engine)) for _ in range(4)] == [1, 1, 1, 0]


async def test_a_list_that_hangs_holds_up_no_other_and_says_so(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "LISTED_S", 0.2)

    @app.job(name="check")
    async def check(place: str) -> None: ...

    async def hangs() -> list[str]:
        await asyncio.Event().wait()
        return []

    app.schedule(check, "stuck", interval_s=3600, entities=hangs)
    app.schedule(check, "well", interval_s=3600, entities=lambda: ["a"])
    _, declared = chores_of(app)

    async with asyncio.timeout(PATIENCE_S):
        while "well/a" not in await told(app) or "not returned" not in (await told(app))["stuck"]:
            await declared.tick()
    await declared.end(PATIENCE_S)


async def told(app: App) -> dict[str, str]:
    """The rows, and what they say of trouble."""
    listed = await app.client.schedules.alisted(entities=True)
    return {each.full_name: each.trouble or "" for each in listed}


async def test_the_end_of_a_worker_in_the_middle_of_a_refresh_is_no_error(engine: AnyEngine) -> None:
    app, began = app_on(engine, entities_refresh_s=3600.0), asyncio.Event()

    @app.job(name="check")
    async def check(name: str) -> None: ...

    async def hangs() -> list[str]:
        began.set()
        await asyncio.Event().wait()
        return []

    app.schedule(check, interval_s=3600, entities=hangs)
    _, declared = chores_of(app)
    tick = asyncio.create_task(declared.tick())
    await asyncio.wait_for(began.wait(), PATIENCE_S)

    await declared.end(PATIENCE_S)

    assert await asyncio.wait_for(tick, PATIENCE_S) > 0
    await app.aclose()
