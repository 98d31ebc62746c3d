"""A move's history row and its event commit with it, or not at all; the loser of a race leaves none."""

from __future__ import annotations

import json
from enum import Enum, StrEnum
from typing import Any

import pytest

from fencerow.db.run import Steps, execute_composed
from fencerow.guards.transitions import Move, Moved, MoveEvents, Transitions
from fencerow.testing.clock import DatabaseClock
from tests.guards.transitions.tables import LEASE_S, AtEngine, extractions, insert, sql, where
from tests.kit.jobs import AnyEngine


class Bus:
    """Writes an event by a statement of its own, in the move's transaction."""

    def __init__(self, engine: AnyEngine) -> None:
        self._query = engine.queries.composed(
            "publish", f"INSERT INTO {where(engine, 'said')} (said) VALUES (:said)"
        )
        self.fails = False

    def publish(self, moved: Moved) -> Steps[object]:
        if moved.move == "requeue":
            return None  # nobody is interested
        yield from execute_composed(
            self._query, {"said": f"{moved.sub or 'main'}.{moved.move} {moved.id} {moved.row['status']}"}
        )
        if self.fails:
            raise RuntimeError("the bus is down")
        return None

    def wake_ups(self) -> list[str]:
        return []


@pytest.fixture
def bus(engine: AnyEngine) -> Bus:
    sql(engine, f"CREATE TABLE {where(engine, 'said')} (said text)")
    return Bus(engine)


@pytest.fixture
def noted(engine: AnyEngine, table: str, bus: Bus) -> Transitions:
    made = extractions(AtEngine(engine), table, history=where(engine, "moves_made"), publisher=bus)
    for statement in made.history_sql().split(";\n"):
        if statement.strip():
            sql(engine, statement)
    insert(engine, table, "a")
    return made


def lines(engine: AnyEngine) -> list[Any]:
    return sql(
        engine,
        f"SELECT row_id, sub, move, source, target, fence FROM {where(engine, 'moves_made')} ORDER BY moved_at",
    )


def said(engine: AnyEngine) -> list[Any]:
    return [row[0] for row in sql(engine, f"SELECT said FROM {where(engine, 'said')}")]


def test_each_move_leaves_a_row_and_an_event(
    noted: Transitions, engine: AnyEngine, clock: DatabaseClock
) -> None:
    noted.check()
    noted.move("claim", "a")
    clock.advance(LEASE_S + 1)
    noted.take("claim")
    assert noted.move("succeed", "a", fence=1) is None
    assert noted.move("cancel", "a") is None
    noted.move("requeue", "a", fence=2)
    noted.move("kill", "a")

    assert lines(engine) == [
        ("a", None, "claim", "queued", "running", 1),
        ("a", None, "claim", "running", "running", 2),
        ("a", None, "requeue", "running", "queued", 2),
        ("a", None, "kill", "queued", "cancelled", None),
    ]
    assert said(engine) == ["main.claim a running", "main.claim a running", "main.kill a cancelled"]
    clock.close()


def test_the_reaper_and_sub_states_leave_them_too(
    noted: Transitions, engine: AnyEngine, clock: DatabaseClock
) -> None:
    noted.move("claim", "a")
    noted.move("succeed_with_boxes", "a", fence=1)
    boxes = noted.sub("boxes")
    boxes.take("claim")
    clock.advance(LEASE_S + 1)
    boxes.reap()

    assert lines(engine)[2:] == [
        ("a", "boxes", "claim", "pending", "running", 1),
        ("a", "boxes", "requeue", "running", "pending", 1),
    ]
    clock.close()


def test_without_its_event_the_move_never_was(
    noted: Transitions, engine: AnyEngine, table: str, bus: Bus
) -> None:
    bus.fails = True
    with pytest.raises(RuntimeError):
        noted.move("claim", "a")

    assert (lines(engine), said(engine)) == ([], [])
    assert sql(engine, f"SELECT status, attempts FROM {table}") == [("queued", 0)]


def test_moves_are_events_of_the_bus(engine: AnyEngine, table: str) -> None:
    """Keyed by the row, with the columns that were asked for; a move of no interest is none."""
    documents = extractions(
        AtEngine(engine),
        table,
        publisher=MoveEvents("extraction", moves=["succeed_with_boxes", "boxes.claim"], columns="result"),
    )
    insert(engine, table, "a")
    documents.move("claim", "a")
    documents.move("succeed_with_boxes", "a", fence=1, values={"result": "42"})
    documents.sub("boxes").take("claim")
    documents.sub("boxes").move("claim", "a")

    events = "fencerow.events" if engine.dialect == "postgres" else "fencerow_events"
    found = [
        (row[0], row[1], json.loads(str(row[2])) if isinstance(row[2], str) else row[2])
        for row in sql(engine, f"SELECT topic, key, data FROM {events} ORDER BY id")
    ]
    assert [row[:2] for row in found] == [
        ("extraction.succeed_with_boxes", "a"),
        ("extraction.boxes.claim", "a"),
    ]
    assert found[0][2] == {
        "id": "a",
        "move": "succeed_with_boxes",
        "source": "running",
        "target": "succeeded",
        "fence": 1,
        "result": "42",
    }


class Way(StrEnum):
    """How far an order is; the names of its members differ from what is stored."""

    NEW = "is new"
    SENT = "sent"


class OldWay(str, Enum):  # noqa: UP042 (that is the point)
    """The same as it was written before StrEnum."""

    NEW = "is new"
    SENT = "sent"


@pytest.mark.parametrize("way", [Way, OldWay])
def test_states_may_be_members_of_an_enum(engine: AnyEngine, way: type[Any]) -> None:
    orders = where(engine, "orders")
    sql(engine, f"CREATE TABLE {orders} (id text PRIMARY KEY, status text)")
    made = Transitions(
        AtEngine(engine),
        table=orders,
        column="status",
        states=[way.NEW, way.SENT],
        moves=[Move("send", [way.NEW], way.SENT)],
        history=where(engine, "moves_made"),
    )
    for statement in made.history_sql().split(";\n"):
        if statement.strip():
            sql(engine, statement)
    insert(engine, orders, "a", status="is new")

    assert made.move("send", "a") == {"id": "a", "status": "sent"}
    assert lines(engine) == [("a", None, "send", "is new", "sent", None)]
    assert "s0 --> sent : send" in made.diagram()
