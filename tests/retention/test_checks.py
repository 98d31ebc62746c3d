"""doctor says whether finished jobs find a period, and which tables could not be removed."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from fencerow import Config
from fencerow.core.model.state import State
from fencerow.core.telemetry import Telemetry
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import Busy
from fencerow.retention.checks import examine_periods
from fencerow.retention.maintenance import MaintenanceChore
from fencerow.retention.periods import close_periods, detach_period, take_period
from fencerow.testing.clock import PostgresClock
from tests.retention.test_periods import Report

CONFIG = Config(retention_period_s=60.0)


def levels(pg: PostgresEngine) -> list[str]:
    return [each.level for each in examine_periods(pg, CONFIG)]


def test_it_tells_how_many_are_ahead_and_what_is_stuck(pg: PostgresEngine) -> None:
    heard: list[str] = []
    telemetry = Telemetry()
    telemetry.listen(lambda name, facts: heard.append(name))
    maintenance = MaintenanceChore(pg, CONFIG, telemetry)

    async def maintained() -> None:
        await maintenance.round()
        await pg.aclose()

    assert levels(pg) == ["info"]
    asyncio.run(maintained())
    assert levels(pg) == ["ok"] and heard == []

    clock = PostgresClock(pg.conninfo)
    clock.advance(400 * 86400.0)
    assert levels(pg) == ["warn"]
    assert pg.run(close_periods(State.SUCCEEDED, age_s=60.0)) == 2
    period = pg.run(take_period())
    assert period is not None
    with Report(pg), pytest.raises(Busy):
        pg.run(detach_period(period.partition))
    assert levels(pg) == ["warn", "warn"]


def test_a_role_that_owns_nothing_sounds_the_alarm(
    pg: PostgresEngine, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []
    telemetry = Telemetry()
    telemetry.listen(lambda name, facts: heard.append(f"{name} {facts['state']} {facts['ahead']}"))
    pg.queries = pg.queries.altered("owns_periods", "current_user", "'somebody else'")
    maintenance = MaintenanceChore(pg, CONFIG, telemetry)

    async def maintained() -> None:
        await maintenance.round()
        await maintenance.round()
        await pg.aclose()

    asyncio.run(maintained())
    assert heard == [f"periods_short {state} 0" for state in ("succeeded", "failed", "cancelled")] * 2
    assert sum("does not own" in record.message for record in caplog.records) == 1
    with psycopg.connect(pg.conninfo) as connection:
        assert connection.execute("SELECT count(*) FROM fencerow.finished_periods").fetchone() == (0,)
