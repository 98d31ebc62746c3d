"""Rows of events and groups that our own code never writes: other events, groups and looks go on."""

from __future__ import annotations

import pytest

from fencerow import Config
from fencerow.db.sqlite import SqliteEngine
from fencerow.events import asides, consumers, lag
from fencerow.events.checks import examine_events
from fencerow.events.consumers import Aside
from fencerow.events.groups import groups, make_group
from fencerow.events.outbox import NewEvent, append
from tests.events.test_without_workers import group_of, read
from tests.kit.jobs import AnyEngine

DEEP = '{"n":' * 3_000 + "1" + "}" * 3_000
TOPICS = ["t", "t.*"]


def write(engine: AnyEngine, statement: str) -> None:
    names = "fencerow." if engine.dialect == "postgres" else "fencerow_"
    with engine.session() as session:
        session.connection.execute(statement.replace("fencerow.", names))


@pytest.mark.parametrize("said", [DEEP, "17", "[17]", '["\\u0000"]', '["\\\\"]'])
def test_a_group_whose_topics_cannot_be_read_stops_no_other_and_is_mended(
    engine: AnyEngine, said: str
) -> None:
    group_of(engine, "g")
    group_of(engine, "h")
    write(engine, f"UPDATE fencerow.event_groups SET topics = '{said}' WHERE name = 'g'")

    (told, *_) = examine_events(engine, Config())
    assert {each.name for each in engine.run(groups())} == {"g", "h"}
    assert {each.group for each in engine.run(lag.lags())} == {"g", "h"}
    assert "\\" in said or (told.name == "event group" and "group g" in told.found)

    engine.run(make_group("g", TOPICS, partitions=1))  # as a worker with its consumer does
    assert {each.topics for each in engine.run(groups())} == {tuple(TOPICS)}


def test_an_error_that_cannot_be_read_hides_no_parked_event(engine: AnyEngine) -> None:
    lease = group_of(engine)
    engine.run(append([NewEvent("t", 1), NewEvent("t", 2)]))
    events = read(engine, lease).events
    parked = [Aside(each.seq, each.id, None, 1, parked=True, error="{}") for each in events]
    engine.run(consumers.advance(lease, old=lease.cursor, cursor=events[1].seq, asides=parked))
    write(engine, f"UPDATE fencerow.event_asides SET error = '{DEEP}' WHERE seq = {events[0].seq}")

    assert [each.error for each in engine.run(asides.parked())] == [DEEP, {}]


def test_a_text_for_a_number_in_a_file_stops_no_reader(lite: SqliteEngine) -> None:
    lease = group_of(lite)
    lite.run(append([NewEvent("t", 1), NewEvent("t", 2)]))
    events = read(lite, lease).events
    waiting = Aside(events[0].seq, events[0].id, None, 1)
    lite.run(consumers.advance(lease, old=lease.cursor, cursor=events[0].seq, asides=[waiting]))
    write(lite, "UPDATE fencerow.events SET published_at = 'yesterday'")
    write(lite, "UPDATE fencerow.event_asides SET deliveries = 'often'")
    write(lite, "UPDATE fencerow.event_groups SET created_at = 'once', alarmed_at = 'never'")

    assert [each.data for each in read(lite, lease, events[0].seq).events] == ["2"]
    assert [each.deliveries for each in lite.run(asides.due_asides(lease))] == [0]
    assert [each.group for each in lite.run(lag.lags())] == ["g"]
    lite.run(lag.retention_estimate())
