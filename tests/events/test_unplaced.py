"""Events that nobody gives a place are unread like others: in the lag, in what doctor says, in the alarm."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from fencerow.core.telemetry import Telemetry
from fencerow.db.postgres import PostgresEngine
from fencerow.events import EventBus, apublish, log
from fencerow.events.checks import examine_events
from fencerow.events.groups import GroupStart, make_group
from fencerow.events.retention import EventRetention
from fencerow.events.sequencer import LOCK
from fencerow.testing.clock import clock_of
from tests.events.conftest import app_on


@contextmanager
def nobody_gives_places(engine: PostgresEngine) -> Iterator[None]:
    """Another session holds the sequencer's lock and does nothing."""
    with psycopg.connect(engine.conninfo) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        yield


async def test_events_without_a_place_are_behind_too(pg: PostgresEngine) -> None:
    app = app_on(pg, retention_unread_events_s=60.0)
    retention = EventRetention(pg, app.config, Telemetry())
    pg.run(make_group("g", ["t"], partitions=2, start=GroupStart("beginning")))
    pg.run(make_group("others", ["u"], partitions=2, start=GroupStart("beginning")))
    await apublish(app, "t", 1)
    with nobody_gives_places(pg):
        clock_of(pg).advance(61)
        await retention.round()
        mine, others = await EventBus(app).alag()
        findings = [(each.name, each.level) for each in examine_events(pg, app.config)]

    assert (mine.events, mine.unplaced, others.events, others.unplaced) == (1, 1, 0, 0)
    assert min(mine.seconds, mine.unplaced_s) > 60 > others.seconds
    assert mine.alarmed_at_us is not None and others.alarmed_at_us is None
    assert ("unplaced events", "fail") in findings

    await retention.round()
    mine, _ = await EventBus(app).alag()
    assert (mine.events, mine.unplaced) == (1, 0)
    await app.aclose()


async def test_whoever_is_kept_from_giving_places_says_so(
    pg: PostgresEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = log.Log(pg, Telemetry(), poll_s=1.0)
    await looking.look()
    monkeypatch.setattr(log, "REFUSED_S", 0.0)
    with nobody_gives_places(pg), caplog.at_level(logging.ERROR):
        await looking.look()
    assert "events have got no places" in caplog.text and str(LOCK) in caplog.text
