"""Schedules that code declares: reconciled, with people's rows left alone, and entities kept in step with a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fencerow import App
from fencerow.errors import (
    InvalidArguments,
    InvalidEntities,
    InvalidSchedule,
    InvalidWindow,
    NoEntities,
    ScheduleTaken,
    UnknownSchedule,
    UnknownZone,
    WrongCall,
)
from fencerow.schedules import Entity
from fencerow.schedules.definitions import RowKind, RowOrigin
from fencerow.testing.clock import DatabaseClock
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S


@pytest.fixture
async def app(engine: AnyEngine) -> AsyncIterator[App]:
    made = app_on(engine)
    _jobs(made)
    yield made
    await made.aclose()


def _jobs(app: App) -> None:
    @app.job(name="report")
    async def report(day: str = "today") -> None: ...

    @app.job(name="deal")
    async def deal(provider: str) -> None: ...


def names(app: App, *, entities: bool = True) -> list[str]:
    return [each.full_name for each in app.client.schedules.listed(entities=entities)]


# --- single schedules --------------------------------------------------------------------------------------


def test_what_is_declared_is_made_changed_and_removed(app: App) -> None:
    app.schedule(app.jobs["report"], cron="0 3 * * *", tz="Europe/Berlin")
    first = app.schedules.reconcile()
    again = app.schedules.reconcile()
    made = app.schedules.get("report")
    _redeclare(app)
    app.schedule(app.jobs["report"].call("yesterday"), cron="0 4 * * *", tz="Europe/Berlin")
    changed = app.schedules.reconcile()
    _redeclare(app)
    removed = app.schedules.reconcile()

    assert (first.made, again.made, again.changed) == (["report"], [], [])
    assert (made.kind, made.origin, made.version) == (RowKind.SINGLE, RowOrigin.CODE, 1)
    assert (changed.changed, removed.removed) == (["report"], ["report"])
    assert names(app) == []


def _redeclare(app: App) -> None:
    app._declarations().all.clear()


def test_a_pause_outlives_a_change_in_code(app: App) -> None:
    app.schedule(app.jobs["report"], interval_s=60)
    app.schedules.reconcile()
    app.schedules.pause("report", reason="moving house")
    _redeclare(app)
    app.schedule(app.jobs["report"], interval_s=120)

    app.schedules.reconcile()

    found = app.schedules.get("report")
    assert (found.pause_reason, found.version) == ("moving house", 3)
    assert found.paused_by == app.actor


def test_what_a_person_made_stays(app: App) -> None:
    app.schedules.put("report", app.jobs["report"], cron="0 3 * * *")
    app.schedules.put("mine", app.jobs["report"], interval_s=60)
    app.schedule(app.jobs["report"], interval_s=60)

    done = app.schedules.reconcile()

    assert done.kept == ["report"]
    assert names(app) == ["mine", "report"]
    assert app.schedules.get("report").in_words() != ""
    assert app.schedules.get("report").origin is RowOrigin.PERSON


def test_what_code_declares_is_changed_by_hand_only_by_a_takeover(app: App) -> None:
    app.schedule(app.jobs["report"], interval_s=60)
    app.schedules.reconcile()

    with pytest.raises(ScheduleTaken, match="declared in code"):
        app.schedules.put("report", app.jobs["report"], interval_s=3600)
    with pytest.raises(ScheduleTaken, match="declared in code"):
        app.schedules.remove("report")
    assert app.schedules.get("report").version == 1
    taken = app.schedules.put("report", app.jobs["report"], interval_s=3600, take_over=True)
    app.schedules.reconcile()

    assert (taken.origin, taken.version) == (RowOrigin.PERSON, 2)
    assert app.schedules.get("report").digest == taken.digest
    assert app.schedules.remove("report") == 1


def test_another_program_keeps_its_schedules(app: App, engine: AnyEngine) -> None:
    app.schedule(app.jobs["report"], interval_s=60)
    app.schedules.reconcile()
    other = app_on(engine, schedules_owner="billing")

    assert other.schedules.reconcile().removed == []

    other.close()
    assert names(app) == ["report"]


async def test_a_schedule_whose_job_a_living_worker_of_another_runs_stays(
    app: App, engine: AnyEngine
) -> None:
    app.schedule(app.jobs["report"], interval_s=60)
    other = app_on(engine)

    @other.job(name="noop")
    async def noop() -> None: ...

    async with app.worker(), app.worker():
        while not await app.schedules.alisted():
            await asyncio.sleep(0.01)
        done = await other.schedules.areconcile()
    gone = await other.schedules.areconcile()

    await other.aclose()
    assert (done.removed, done.elsewhere) == ([], ["report"])
    assert gone.removed == ["report"]


# --- entities ---------------------------------------------------------------------------------------------


async def test_entities_follow_their_list(app: App, engine: AnyEngine) -> None:
    providers: list[str | Entity] = ["f01", "f02"]
    app.schedule(app.jobs["deal"], "deals", rate=4, per="hour", entities=lambda: providers)
    await app.schedules.areconcile()

    first = await app.schedules.arefresh("deals")
    providers[:] = ["f02", Entity("f03", app.jobs["deal"].call("three"), {"rate": 1})]
    second = await app.schedules.arefresh("deals")
    third = await app.schedules.arefresh("deals")

    assert (first.made, second.made, second.removed) == (["f01", "f02"], ["f03"], ["f01"])
    assert (third.made, third.changed, third.removed) == ([], [], [])
    listed = await app.schedules.alisted(entities=True)
    assert [each.full_name for each in listed] == ["deals", "deals/f02", "deals/f03"]
    assert listed[0].entities == 2 and listed[0].next_us == min(each.next_us or 0 for each in listed[1:])
    assert [each.document()["args"] for each in listed[1:]] == [{"provider": "f02"}, {"provider": "three"}]


async def test_an_empty_list_or_an_error_removes_nothing(app: App) -> None:
    providers: list[str] = ["f01"]

    async def listed() -> list[str]:
        if providers == ["broken"]:
            raise ConnectionError("the chain is away")
        return providers

    app.schedule(app.jobs["deal"], interval_s=900, entities=listed)
    await app.schedules.areconcile()
    await app.schedules.arefresh("deal")

    providers.clear()
    with pytest.raises(NoEntities, match="FR-826"):
        await app.schedules.arefresh("deal")
    providers[:] = ["broken"]
    with pytest.raises(InvalidEntities, match="the chain is away"):
        await app.schedules.arefresh("deal")
    providers[:] = ["f02", "f02"]
    with pytest.raises(InvalidEntities, match="twice"):
        await app.schedules.arefresh("deal")
    providers[:] = [""]
    with pytest.raises(InvalidEntities, match="empty"):
        await app.schedules.arefresh("deal")

    assert [each.full_name for each in await app.schedules.alisted(entities=True)] == ["deal", "deal/f01"]


async def test_new_entities_of_a_paused_schedule_are_paused(app: App) -> None:
    providers = ["f01"]
    app.schedule(app.jobs["deal"], interval_s=900, entities=lambda: providers)
    await app.schedules.areconcile()
    await app.schedules.arefresh("deal")
    assert await app.schedules.apause("deal", reason="the chain moves") == 2

    providers.append("f02")
    await app.schedules.arefresh("deal")

    assert (await app.schedules.aget("deal", "f02")).pause_reason == "the chain moves"
    assert await app.schedules.aresume("deal", "f02") == 1
    assert (await app.schedules.aget("deal", "f01")).paused_at_us is not None


async def test_the_entities_of_a_job_that_is_scheduled_no_longer_go(app: App) -> None:
    app.schedule(app.jobs["deal"], interval_s=900, entities=lambda: ["f01", "f02"])
    await app.schedules.areconcile()
    await app.schedules.arefresh("deal")
    await app.schedules.aput("deal", app.jobs["deal"].call("f02"), "f02", interval_s=60, take_over=True)
    _redeclare(app)

    await app.schedules.areconcile()

    assert [each.full_name for each in await app.schedules.alisted(entities=True)] == ["deal/f02"]


async def test_a_person_may_have_one_entity_otherwise(app: App) -> None:
    app.schedule(app.jobs["deal"], interval_s=900, entities=lambda: ["f01", "f02"])
    await app.schedules.areconcile()
    await app.schedules.arefresh("deal")

    await app.schedules.aput("deal", app.jobs["deal"].call("f02"), "f02", interval_s=60, take_over=True)
    done = await app.schedules.arefresh("deal")

    assert (done.kept, done.changed) == (["f02"], [])
    assert (await app.schedules.aget("deal", "f02")).document()["when"]["interval_s"] == 60


async def test_a_list_of_an_earlier_release_changes_nothing(app: App, engine: AnyEngine) -> None:
    app.schedule(app.jobs["deal"], interval_s=900, entities=lambda: ["f01"])
    newer = app_on(engine)
    _jobs(newer)
    newer.schedule(newer.jobs["deal"], interval_s=60, entities=lambda: ["f02"])
    await app.schedules.areconcile()
    await newer.schedules.areconcile()

    stale = await app.schedules.arefresh("deal")
    fresh = await newer.schedules.arefresh("deal")

    await newer.aclose()
    assert stale.is_stale and fresh.made == ["f02"]


# --- at the door ------------------------------------------------------------------------------------------


def test_two_declarations_of_one_name_are_refused(app: App) -> None:
    app.schedule(app.jobs["report"], interval_s=60)

    with pytest.raises(ScheduleTaken, match="two schedules"):
        app.schedule(app.jobs["report"], interval_s=120)
    app.schedule(app.jobs["report"], "report-2", interval_s=120)


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({}, InvalidSchedule, "does not say when"),
        ({"cron": "61 * * * *"}, InvalidSchedule, "cron"),
        ({"cron": "* * * * *", "tz": "Europe/Berlim"}, UnknownZone, "Berlin"),
        ({"rate": -1}, InvalidSchedule, "rate"),
        ({"interval_s": 0.1}, InvalidSchedule, "1 s"),
        ({"interval_s": 60, "cron": "* * * * *"}, InvalidSchedule, "cron and"),
        ({"interval_s": 60, "every": 1}, WrongCall, "every"),
        ({"interval_s": 60, "misfire": "some"}, InvalidSchedule, "misfire"),
        ({"interval_s": 60, "misfire": "all", "overlap": "skip"}, InvalidSchedule, "overlap"),
        ({"interval_s": 60, "catchup_max": 0}, InvalidSchedule, "catchup_max"),
        ({"interval_s": 60, "late_s": "x"}, InvalidSchedule, "late_s"),
        ({"interval_s": 60, "misfire": "skip", "late_s": 0}, InvalidSchedule, "late_s"),
        ({"cron": "0 10 * * *", "windows": ["09:00-11:00"]}, InvalidWindow, "never make one"),
        ({"cron": "0 0 1 1 *", "windows": ["00:00-06:00"]}, InvalidWindow, "never make one"),
    ],
)
def test_what_cannot_work_is_refused_and_nothing_is_stored(
    app: App, given: dict[str, object], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        app.schedule(app.jobs["report"], **given)  # type: ignore[arg-type]
    with pytest.raises(error, match=match):
        app.schedules.put("other", app.jobs["report"], **given)  # type: ignore[arg-type]

    assert names(app) == [] and not app.schedules.reconcile().made


def test_a_job_that_does_not_fit_is_refused(app: App) -> None:
    with pytest.raises(InvalidArguments):
        app.schedule(app.jobs["deal"], interval_s=60)
    with pytest.raises(InvalidSchedule, match="key"):
        app.schedule(app.jobs["report"].using(key="k").call(), interval_s=60)
    with pytest.raises(InvalidSchedule, match="is expected"):
        app.schedule(print, interval_s=60)  # type: ignore[arg-type]
    with pytest.raises(UnknownSchedule, match="did you mean report"):
        app.schedules.put("report", app.jobs["report"], interval_s=60)
        app.schedules.pause("repotr")


# --- runs that people ask for -----------------------------------------------------------------------------


def test_a_change_keeps_what_it_does_not_say(app: App) -> None:
    app.schedules.put("nightly", app.jobs["report"], cron="0 3 * * *", tz="Europe/Berlin", jitter_s=5)

    def said(**given: Any) -> dict[str, Any]:
        when = app.schedules.change("nightly", **given).document()["when"]
        assert isinstance(when, dict)
        return when

    assert said(cron="0 4 * * *") == {"cron": "0 4 * * *", "tz": "Europe/Berlin", "jitter_s": 5}
    assert said(tz="UTC", jitter_s=0) == {"cron": "0 4 * * *", "tz": "UTC"}
    assert said(rate=2, per="day", phase_s=60)["per"] == "day"
    kept = said(rate=3)
    assert (kept["rate"], kept["per"], kept["phase_s"]) == (3, "day", 60)
    assert "phase_s" in said(interval_s=900) and "rate" not in said(interval_s=900)
    with pytest.raises(InvalidSchedule, match="has no 'tz'"):
        said(tz="UTC")


def test_run_now_makes_a_job_and_leaves_the_next_fire(app: App) -> None:
    before = app.schedules.put("report", app.jobs["report"], interval_s=3600)
    app.schedules.pause("report")

    (run,) = app.schedules.run("report")
    (busy,) = app.schedules.run("report")
    (forced,) = app.schedules.run("report", force=True)

    assert run.job_id is not None and busy.job_id is None and forced.job_id is not None
    after = app.schedules.get("report")
    assert (after.next_us, after.last_job_id) == (before.next_us, forced.job_id)
    ticks = app.schedules.ticks("report")
    assert [(each.job_id, each.made_by, each.state) for each in ticks] == [
        (forced.job_id, app.actor, "queued"),
        (run.job_id, app.actor, "queued"),
    ]


def test_a_resume_fires_at_once_if_that_is_asked_for(app: App, clock: DatabaseClock) -> None:
    app.schedules.put("report", app.jobs["report"], interval_s=3600)
    app.schedules.pause("report")
    clock.advance(7200)

    assert app.schedules.resume("report", run_now=True) == 1
    assert app.schedules.tick() == []
    assert len(app.schedules.ticks("report")) == 1


def test_next_fires_are_told(app: App) -> None:
    app.schedules.put("report", app.jobs["report"], cron="0 3 * * *", tz="Europe/Berlin")

    fires = app.schedules.next_fires("report", count=3)

    assert len(fires) == 3 and all(each.minute == 0 for each in fires)
    report = app.schedules.get("report")
    assert fires[0] == report.next
    assert report.fires(fires[0], 2) == fires[1:] and report.starts(fires[0]) == fires[0]


# --- in a worker ------------------------------------------------------------------------------------------


async def test_a_worker_makes_what_is_declared_and_fires_it(app: App) -> None:
    ran: asyncio.Queue[str] = asyncio.Queue()

    @app.job(name="beat")
    async def beat(who: str = "single") -> None:
        await ran.put(who)

    app.schedule(beat, interval_s=1)
    app.schedule(beat, "beats", interval_s=1, entities=lambda: ["one", "two"])

    seen: set[str] = set()
    async with app.worker(), asyncio.timeout(PATIENCE_S):
        while seen != {"single", "one", "two"}:
            seen.add(await ran.get())

    listed = await app.schedules.alisted(entities=True)
    assert [each.full_name for each in listed] == ["beat", "beats", "beats/one", "beats/two"]


async def test_a_worker_without_schedules_leaves_them_to_others(app: App) -> None:
    app.schedule(app.jobs["report"], interval_s=1)

    worker = app.worker(without=("schedules", "declared schedules"))
    async with worker:
        await (await app.jobs["report"].asubmit()).aresult(timeout_s=PATIENCE_S)

    assert await app.schedules.alisted() == []
