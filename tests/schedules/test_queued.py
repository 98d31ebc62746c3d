"""Overlap `queue`: each job of a schedule waits until those before it have ended, by a key of the schedule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fencerow import App
from fencerow.core.client.base import ClientBase
from fencerow.core.store import store
from fencerow.core.store.attempts import Requeue, Success
from fencerow.core.store.hints import ARRIVED, hints_of
from fencerow.errors import InvalidEntities, InvalidInput, InvalidSchedule
from fencerow.schedules import ticking
from fencerow.schedules.definition import Overlap
from fencerow.schedules.misfire import Misfire
from fencerow.schedules.verbs import ScheduleVerbs
from fencerow.testing.clock import DatabaseClock
from fencerow.turns import handing
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine, claim, register

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

Put = Callable[..., Any]


def handed(engine: AnyEngine) -> list[str]:
    return [job.id for job in engine.run(handing.hand_over()).queued]


def fired(engine: AnyEngine) -> list[str]:
    jobs = engine.run(ticking.tick()).jobs
    assert hints_of(jobs) == ([ARRIVED] if jobs else []), "a gate is told of, and no lane"
    return [job.id for job in jobs]


def test_each_job_waits_until_those_before_it_have_ended_retries_and_all(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(overlap=Overlap.QUEUE)
    ids = []
    for _ in range(3):
        clock.advance(60)
        ids += fired(engine)
    holder = register(engine)
    assert len(ids) == 3 and handed(engine) == ids[:1]

    (first,) = claim(engine, holder, limit=10)
    failed = Requeue(id=first.id, attempt=1, kind="retried", delay_s=5.0, failures=1)
    assert engine.run(store.requeue([failed], holder=holder))
    assert handed(engine) == [], "somebody went past a retry"
    clock.advance(5)
    (second,) = claim(engine, holder, limit=10)
    assert (second.id, second.attempt) == (first.id, 2)

    for after in ids[1:]:
        (running,) = [second] if after == ids[1] else claim(engine, holder, limit=10)
        assert engine.run(store.succeed([Success(running.id, running.attempt, "1")], holder=holder))
        assert handed(engine) == [after]


def test_what_is_made_up_and_what_a_person_runs_waits_in_the_same_row(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(overlap=Overlap.QUEUE, misfire=Misfire.ALL)
    clock.advance(240)
    ids = fired(engine)
    (by_hand,) = ScheduleVerbs(ClientBase(engine, actor="ada")).run("report", force=True)

    for expected in [*ids, by_hand.job_id]:
        assert handed(engine) == [expected]
        engine.run(store.cancel(str(expected), actor=None, reason=None))
    assert len(ids) == 4


def test_entities_wait_for_themselves_only(engine: AnyEngine, clock: DatabaseClock, put: Put) -> None:
    put("deal", "f01", overlap=Overlap.QUEUE)
    put("deal", "f02", overlap=Overlap.QUEUE)
    clock.advance(60)
    first = fired(engine)
    clock.advance(60)
    fired(engine)

    assert sorted(handed(engine)) == sorted(first)


# --- beside keys of the user's own ---------------------------------------------------------------------------


@pytest.fixture
async def app(engine: AnyEngine) -> AsyncIterator[App]:
    made = app_on(engine)

    @made.job(name="sync", exclusive="account")
    async def sync() -> None: ...

    @made.job(name="deal", exclusive=lambda provider: f"provider-{provider}")
    async def deal(provider: str) -> None: ...

    @made.job(name="report")
    async def report() -> None: ...

    yield made
    await made.aclose()


def test_a_job_with_a_key_of_its_own_cannot_queue_behind_its_schedule(app: App) -> None:
    with pytest.raises(InvalidSchedule, match=r"(?s)exclusive key 'account'.*overlap='allow'"):
        app.schedules.put("s", app.jobs["sync"], interval_s=60, overlap="queue")
    with pytest.raises(InvalidSchedule, match="exclusive key 'account'"):
        app.schedule(app.jobs["sync"], interval_s=60, overlap="queue")
    app.schedules.put("s", app.jobs["sync"], interval_s=60, overlap="allow")
    with pytest.raises(InvalidSchedule, match="exclusive key 'account'"):
        app.schedules.change("s", overlap="queue")
    assert [each.full_name for each in app.schedules.listed()] == ["s"]
    assert app.schedules.get("s").version == 1


async def test_a_key_that_a_function_computes_is_that_of_each_entity(
    app: App, engine: AnyEngine, clock: DatabaseClock
) -> None:
    app.schedule(app.jobs["deal"], interval_s=60, spread=False, entities=lambda: ["f01", "f02"])
    await app.schedules.areconcile()
    await app.schedules.arefresh("deal")
    clock.advance(60)

    jobs = (await engine.arun(ticking.tick())).jobs

    assert sorted(job.exclusive or "" for job in jobs) == ["provider-f01", "provider-f02"]
    app._declarations().all.clear()
    app.schedule(app.jobs["deal"], interval_s=60, overlap="queue", entities=lambda: ["f01", "f02"])
    await app.schedules.areconcile()
    with pytest.raises(InvalidEntities, match="'f01': overlap is 'queue'"):
        await app.schedules.arefresh("deal")


def test_no_key_of_a_user_meets_that_of_a_schedule(app: App, engine: AnyEngine) -> None:
    with pytest.raises(InvalidInput, match="given by Fencerow itself"):
        app.jobs["report"].using(exclusive="fencerow:schedule:report")
    with pytest.raises(InvalidInput, match="given by Fencerow itself"):
        app.jobs["report"].using(exclusive=lambda: "fencerow:schedule:report").submit()
    assert handed(engine) == []


def test_people_see_who_waits_behind_whom(
    cli: Cli, url: str, engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(overlap=Overlap.QUEUE)
    clock.advance(60)
    fired(engine)
    clock.advance(60)
    fired(engine)

    assert "one after the other" in cli("schedules", "explain", "report").out
    assert cli("schedules", "show", "report", "--json").json["overlap"] == "queue"
    assert "a job, waiting" in cli("schedules", "show", "report").out
    assert cli("schedules", "set", "report", "--overlap", "skip", "--json").json["overlap"] == "skip"
