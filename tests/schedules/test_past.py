"""A backfill of a schedule: the fires of a stretch of the past make their jobs, each once."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from fencerow.core.client.base import ClientBase
from fencerow.core.model.job import moment
from fencerow.core.store import store
from fencerow.errors import InvalidInput, UnknownSchedule
from fencerow.schedules import looking, past, ticking
from fencerow.schedules.definition import FIRE_HEADER, Overlap
from fencerow.schedules.misfire import Misfire
from fencerow.schedules.past import BackfilledFire
from fencerow.schedules.ticking import Made
from fencerow.schedules.verbs import ScheduleVerbs
from fencerow.testing.clock import DatabaseClock
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

Put = Callable[..., Any]
HOURLY = {"interval_s": 3600, "spread": False}


def verbs(engine: AnyEngine) -> ScheduleVerbs:
    return ScheduleVerbs(ClientBase(engine, actor="ada"))


def now(engine: AnyEngine) -> datetime:
    return moment(engine.run(looking.now_us()))


def backfilled(
    engine: AnyEngine, hours: float = 6, name: str = "report", **more: Any
) -> list[BackfilledFire]:
    end = now(engine)
    return verbs(engine).backfill(name, start=end - timedelta(hours=hours), end=end, **more)


def test_each_fire_makes_one_job_however_often_it_is_asked_for(engine: AnyEngine, put: Put) -> None:
    put(spec=HOURLY)
    end = now(engine)

    first = verbs(engine).backfill("report", start=end - timedelta(hours=6), end=end)
    again = verbs(engine).backfill("report", start=end - timedelta(hours=8), end=end)

    jobs = engine.run(store.read([each.job_id for each in first if each.job_id]))
    assert len(first) == len(jobs) == 6
    assert [each.fire_us % 3_600_000_000 for each in first] == [0] * 6
    fires = [moment(each.fire_us).isoformat() for each in first]
    assert [(jobs[each.job_id or ""].headers or {})[FIRE_HEADER] for each in first] == fires
    assert [(each.was_made, each.job_id is None) for each in again] == [(False, False)] * 2 + [
        (True, True)
    ] * 6


def test_two_at_once_make_no_fire_twice(engine: AnyEngine, put: Put) -> None:
    """Both have seen that nothing was made: the statement decides."""
    put(spec=HOURLY)
    fires = [("", each) for each in range(0, 5 * 3_600_000_000, 3_600_000_000)]

    first = engine.run(past.backfill("report", None, fires, actor="ada"))
    second = engine.run(past.backfill("report", None, fires, actor="bob"))

    assert len(first) == 5 and second == []
    assert {each.made_by for each in engine.run(ticking.read_ticks("report", None, 100))} == {"ada"}


def test_a_fire_that_was_left_out_is_made(engine: AnyEngine, clock: DatabaseClock, put: Put) -> None:
    put(spec=HOURLY, misfire=Misfire.SKIP, late_s=0.001, overlap=Overlap.ALLOW)
    clock.advance(5 * 3600)
    assert engine.run(ticking.tick()).jobs == []

    made = backfilled(engine, hours=5)

    assert len(made) == 5 and all(each.job_id for each in made)
    assert {each.made for each in engine.run(ticking.read_ticks("report", None, 100))} == {Made.JOB}
    assert engine.run(ticking.tick()).jobs == []


def test_what_a_backfill_made_no_tick_makes(engine: AnyEngine, clock: DatabaseClock, put: Put) -> None:
    put(spec=HOURLY, misfire=Misfire.ALL, overlap=Overlap.ALLOW)
    clock.advance(3 * 3600)

    made = backfilled(engine, hours=3)

    assert len(made) == 3
    assert engine.run(ticking.tick()).jobs == []
    assert [each.was_made for each in backfilled(engine, hours=3)] == [True] * 3


def test_what_is_no_longer_known_is_refused_and_made_by_force(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put(spec=HOURLY, overlap=Overlap.ALLOW)
    clock.advance(3600)
    (job,) = engine.run(ticking.tick()).jobs
    engine.run(store.cancel(job.id, actor="ada"))
    clock.advance(4 * 3600)
    engine.run(ticking.tick())
    assert engine.run(ticking.purge_ticks(age_s=2 * 3600, limit=10)) == 1

    for dry_run in (False, True):
        with pytest.raises(InvalidInput, match=r"(?s)is no longer known.*--force"):
            backfilled(engine, hours=6, dry_run=dry_run)
    assert [each.was_made for each in backfilled(engine, hours=4)] == [False, False, False, True]
    (old,) = [("", each.fire_us) for each in backfilled(engine, hours=5, dry_run=True, force=True)[:1]]
    assert engine.run(past.backfill("report", None, [old], actor="ada")) == [], "purged after the look"
    assert len([each for each in backfilled(engine, hours=5, force=True) if each.job_id]) == 1


def test_a_preview_makes_nothing(engine: AnyEngine, put: Put) -> None:
    put(spec=HOURLY)

    seen = backfilled(engine, dry_run=True)

    assert [(each.job_id, each.was_made) for each in seen] == [(None, False)] * 6
    assert engine.run(ticking.read_ticks("report", None, 100)) == []


def test_it_makes_those_of_one_entity_or_of_all(engine: AnyEngine, put: Put) -> None:
    for entity in ("ada", "bob"):
        put("probe", entity, spec=HOURLY)
    end = now(engine)

    one = verbs(engine).backfill("probe", "bob", start=end - timedelta(hours=2), end=end)
    all_of_them = verbs(engine).backfill("probe", start=end - timedelta(hours=2), end=end)

    assert [each.entity for each in one] == ["bob"] * 2
    assert [(each.entity, each.was_made) for each in all_of_them] == [("ada", False), ("bob", True)] * 2


def test_what_cannot_be_backfilled_is_refused(engine: AnyEngine, put: Put) -> None:
    put(spec=HOURLY)
    end, hour = now(engine), timedelta(hours=1)
    refused: list[tuple[str, dict[str, Any]]] = [
        ("more than 3 fires", {"start": end - 4 * hour, "end": end, "at_most": 3}),
        ("cannot be backfilled", {"start": end - hour, "end": end + hour}),
        ("cannot be backfilled", {"start": end, "end": end - hour}),
        ("without a zone", {"start": (end - hour).replace(tzinfo=None), "end": end}),
        ("1 to 10000", {"start": end - hour, "end": end, "at_most": 0}),
    ]

    for said, given in refused:
        with pytest.raises(InvalidInput) as error:
            verbs(engine).backfill("report", **given)
        assert said in str(error.value)
    with pytest.raises(UnknownSchedule):
        backfilled(engine, name="reprot")
    assert engine.run(ticking.read_ticks("report", None, 100)) == []


def test_more_than_one_transaction_takes(
    engine: AnyEngine, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "AT_ONCE", 2)
    put(spec=HOURLY)

    assert [each.was_made for each in backfilled(engine, hours=5)] == [False] * 5


def test_the_command_previews_and_makes(cli: Cli, url: str, engine: AnyEngine, put: Put) -> None:
    put(spec=HOURLY)
    end = now(engine)
    stretch = ("--from", (end - timedelta(hours=2)).isoformat(), "--to", end.isoformat())

    preview = cli("schedules", "backfill", "report", *stretch, "--dry-run").out
    made = cli("schedules", "backfill", "report", *stretch, "--json").json
    again = cli("schedules", "backfill", "report", *stretch).out

    assert "would make 2 of 2 fires" in preview
    assert [sorted(each) for each in made] == [["entity", "fire", "job_id", "was_made"]] * 2
    assert "made 0 of 2 fires" in again and json.dumps(made[0]["job_id"]) not in again
    refused = cli("schedules", "backfill", "report", "--from", "yesterday", "--to", end.isoformat())
    assert refused.code == 2 and "--from is 'yesterday'" in refused.err
