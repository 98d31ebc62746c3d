"""Part B of the four systems, its clockwork: rates per provider, catching up, pauses, two schedulers at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from fencerow import App
from fencerow.core.model.job import NewJob
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.schedules import ScheduleRecord, ticking
from fencerow.testing.clock import clock_of
from tests.kit.plainly import plainly
from tests.whole.systems import dealbot_rates as dealbot
from tests.whole.systems.outside import until
from tests.whole.systems.stage import Stage

INTERVAL_US = 900_000_000
DOWN_S = 5 * 3600.0


@pytest.fixture
async def stage(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    made = Stage(dealbot, url, monkeypatch)
    await made.open()
    await dealbot.app.schedules.areconcile()
    await dealbot.app.schedules.arefresh("deal")
    yield made
    await made.close()


async def passed(app: App | None = None) -> list[NewJob]:
    """One pass of a scheduler."""
    return (await (app or dealbot.app).engine.arun(ticking.tick())).jobs


async def row(entity: str = "", name: str = "deal") -> ScheduleRecord:
    return await dealbot.app.schedules.aget(name, entity)


def of(jobs: list[NewJob], name: str, entity: str = "") -> list[NewJob]:
    return [each for each in jobs if each.template.name == name and entity in each.args]


@pytest.mark.scenario("B.8")
async def test_after_five_hours_the_fires_of_a_provider_come_ten_at_a_time(stage: Stage) -> None:
    first_us = (await row("sp-1")).next_us or 0
    stage.clock.advance(DOWN_S)

    first, second, third = await passed(), await passed(), await passed()

    assert (len(of(first, "deal", "sp-1")), len(of(second, "deal", "sp-1"))) == (10, 10)
    assert len(of(third, "deal", "sp-1")) in (0, 1)
    fires = [each.fire_us for each in await dealbot.app.schedules.aticks("deal", "sp-1", limit=100)]
    assert fires[::-1][:20] == [first_us + INTERVAL_US * number for number in range(20)]
    assert (await row("sp-1")).next_us == max(fires) + INTERVAL_US


@pytest.mark.scenario("B.9")
async def test_a_global_schedule_is_made_up_once(stage: Stage) -> None:
    stage.clock.advance(DOWN_S)
    jobs = await passed() + await passed() + await passed()
    now_us = await asyncio.to_thread(stage.now_us)
    found = await row(name="retention_poll")

    assert len(of(jobs, "retention_poll")) == 1
    assert found.next_us is not None and 0 < found.next_us - now_us <= 3_600_000_000


@pytest.mark.scenario("B.10")
async def test_two_schedulers_at_once_make_each_fire_once(stage: Stage, url: str) -> None:
    dealbot.providers[:] = [f"sp-{number}" for number in range(18)]
    await dealbot.app.schedules.arefresh("deal")
    stage.clock.advance(DOWN_S)
    async with App(url) as other:
        if isinstance(other.engine, SqliteEngine):  # its clock comes with the connection
            clock_of(other.engine).advance(DOWN_S)
        jobs: list[NewJob] = []
        while any(found := await asyncio.gather(passed(), passed(other))):
            jobs += [each for some in found for each in some]

    ticks = await dealbot.app.schedules.aticks("deal", limit=10_000)
    assert len(jobs) == len({each.id for each in jobs}) == len(ticks) + 1
    assert len({(each.entity, each.fire_us) for each in ticks}) == len(ticks)
    assert {len(of(jobs, "deal", f'"sp-{number}"')) for number in range(18)} <= {20, 21}


@pytest.mark.scenario("B.11")
async def test_a_pause_is_kept_a_resume_fires_at_once_and_one_provider_can_be_run(stage: Stage) -> None:
    schedules = dealbot.app.schedules
    await schedules.apause("deal", "sp-1", reason="the provider moves")
    stage.clock.advance(DOWN_S)

    assert {each.args for each in of(await passed(), "deal")} == {'{"provider":"sp-2"}'}
    due_us = (await row("sp-1")).next_us
    await schedules.achange("deal", "sp-1", rate=2, take_over=True)
    changed = await row("sp-1")
    assert (changed.pause_reason, changed.next_us) == ("the provider moves", due_us)
    await schedules.aresume("deal", "sp-1", run_now=True)
    assert len(await schedules.aticks("deal", "sp-1")) == 1
    (run,) = await schedules.arun("deal", "sp-2")
    assert run.entity == "sp-2" and run.job_id is not None


@pytest.mark.scenario("B.12")
async def test_rates_and_phases_are_what_they_say(stage: Stage) -> None:
    schedules = dealbot.app.schedules
    plain = await schedules.aput("plain", dealbot.retention_poll, rate="1/24", spread=False)
    later = await schedules.aput("later", dealbot.retention_poll, rate="1/24", spread=False, phase_s=1200)
    often = await schedules.anext_fires("deal", "sp-1", count=3)
    daily = await schedules.anext_fires("plain", count=2)

    assert {second - first for first, second in pairwise(often)} == {timedelta(microseconds=INTERVAL_US)}
    assert daily[1] - daily[0] == timedelta(days=1)
    assert ((later.next_us or 0) - (plain.next_us or 0)) % 86_400_000_000 == 1_200_000_000


@pytest.mark.scenario("D.13")
async def test_of_two_reconcile_crons_at_once_one_runs(stage: Stage, url: str) -> None:
    await dealbot.app.schedules.aput("reconcile-broadcasts", dealbot.retention_poll, cron="* * * * *")
    stage.clock.advance(60)

    async with App(url) as other:
        await asyncio.gather(passed(), passed(other), passed(), passed(other))
    stage.clock.advance(60)
    await passed()  # the first has not ended

    made = [each.made for each in await dealbot.app.schedules.aticks("reconcile-broadcasts")]
    assert sorted(made) == ["job", "overlap"]


@pytest.mark.scenario("C.13")
async def test_three_schedulers_of_which_one_is_killed_make_each_fire_once(
    stage: Stage, tmp_path: Path
) -> None:
    """A second's beat, each fire made up; and one whose job lasts longer than its interval."""
    app, schedules = dealbot.app, dealbot.app.schedules
    dealbot.provider.script("hang")
    await schedules.aput("beat", dealbot.retention_poll, interval_s=1, misfire="all", catchup_max=100)
    await schedules.aput("long", dealbot.long_poll, interval_s=1)

    def fires(name: str) -> int:
        return len(plainly(schedules.ticks, name, limit=1000))

    def beats() -> int:
        return fires("beat")

    with ExitStack() as processes:
        workers = [
            processes.enter_context(stage.process(tmp_path / f"worker-{number}.log")) for number in range(3)
        ]
        await until(lambda: beats() >= 3, "three beats")
        workers[0].kill()
        now = await asyncio.to_thread(beats)
        await until(lambda: beats() >= now + 3, "three more of the other two")
        await until(lambda: fires("long") >= 3, "three fires while the long one runs")

    ticks = await schedules.aticks("beat", limit=1000)
    made = [each.job_id for each in ticks]
    assert {first.fire_us - second.fire_us for first, second in pairwise(ticks)} == {1_000_000}
    assert None not in made and len(set(made)) == len(made)
    stored = await app.engine.arun(store.read([each for each in made if each]))
    assert len(stored) == len(made)
    long = await schedules.aticks("long", limit=1000)
    assert [each.made for each in long].count(ticking.Made.JOB) == 1
