"""However many rows there are: all are looked at, and what is left out is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fencerow.config import Config
from fencerow.core.client.base import ClientBase
from fencerow.core.finding import Level
from fencerow.schedules import definitions, past, ticking
from fencerow.schedules.checks import examine_schedules
from fencerow.schedules.definition import Overlap
from fencerow.schedules.definitions import RowKind, RowOrigin
from fencerow.schedules.verbs import ScheduleVerbs
from fencerow.testing.clock import DatabaseClock
from tests.kit.jobs import AnyEngine
from tests.schedules.conftest import wanted
from tests.schedules.test_ticks import fired

Put = Callable[..., Any]


def told(engine: AnyEngine, level: Level = Level.WARN) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in examine_schedules(engine, Config()):
        if each.level is level:
            found.setdefault(each.name, []).append(each.found)
    return found


def test_a_backfill_makes_the_fires_of_all_entities(
    engine: AnyEngine, clock: DatabaseClock, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "PAGE_ROWS", 2)
    for entity in ("a", "b", "c", "d", "e"):
        put(entity=entity, spec={"interval_s": 3600}, overlap=Overlap.ALLOW)
    now = datetime.now(UTC)
    verbs = ScheduleVerbs(ClientBase(engine, actor="ada"))

    found = verbs.backfill("report", start=now - timedelta(hours=2), end=now - timedelta(hours=1))

    assert sorted(each.entity for each in found) == ["a", "b", "c", "d", "e"]
    with pytest.raises(Exception, match="more than 4 fires"):
        verbs.backfill("report", start=now - timedelta(hours=2), end=now - timedelta(hours=1), at_most=4)


def test_many_rows_are_computed_part_by_part() -> None:
    rows = [wanted(entity=f"e{number:04}", kind=RowKind.ENTITY) for number in range(501)]
    steps = definitions.put_rows(rows, RowOrigin.CODE, "app", None)
    sizes: list[int] = []

    next(steps)  # what time it is
    with pytest.raises(StopIteration) as done:
        statement = steps.send([(0,)])
        while True:
            asked = json.loads(str(statement.params["rows"]))
            sizes.append(len(asked))
            statement = steps.send([(each["name"], each["entity"], True) for each in asked])

    assert sizes == [200, 200, 101]
    assert done.value.value.made == [(row.name, row.entity) for row in rows]


def test_doctor_counts_those_that_it_does_not_name(engine: AnyEngine, clock: DatabaseClock, put: Put) -> None:
    for entity in "abcdefg":
        put(entity=entity)
    engine.run(ticking.note_troubles({("report", entity): "no such zone" for entity in "abcdefg"}))
    clock.advance(600)

    found = told(engine)

    assert len(found["schedule in trouble"]) == 6
    assert found["schedule in trouble"][-1] == "2 more schedules are in trouble"
    assert found["overdue schedules"][0].startswith("7 should have fired")
    assert told(engine, Level.OK) == {"schedules": ["7 fire, unless they are paused"]}


def test_doctor_tells_of_those_that_fired_while_the_clock_was_ahead(
    engine: AnyEngine, clock: DatabaseClock, put: Put
) -> None:
    put("hourly", spec={"interval_s": 3600})
    put("yearly", spec={"cron": "0 0 1 1 *"})
    clock.advance(7200)
    fired(engine)
    assert "schedules ahead of their times" not in told(engine)

    clock.advance(10 * 86_400)
    fired(engine)
    clock.advance(-10 * 86_400)
    assert "hourly fired while" in told(engine)["schedules ahead of their times"][0]
    verbs = ScheduleVerbs(ClientBase(engine, actor="ada"))
    verbs.pause("hourly")
    verbs.resume("hourly")

    assert "schedules ahead of their times" not in told(engine)
