"""A second stage on a row whose main state is final: entered in the main move's UPDATE, with a life of its own."""

from __future__ import annotations

import pytest

from fencerow.guards.transitions import Moves, Refusal, Transitions
from fencerow.testing.clock import DatabaseClock
from tests.guards.transitions.tables import LEASE_S, insert
from tests.kit.jobs import AnyEngine


@pytest.fixture(autouse=True)
def _finished(documents: Transitions, engine: AnyEngine, table: str) -> None:
    """A row whose first stage is done, with its second one asked for."""
    insert(engine, table, "a")
    documents.move("claim", "a")
    row = documents.move("succeed_with_boxes", "a", fence=1, values={"result": "text"})
    assert row is not None and (row["status"], row["boxes_status"]) == ("succeeded", "pending")


def test_it_is_claimed_and_completed_while_the_main_state_stays(boxes: Moves) -> None:
    claimed = boxes.move("claim", "a")
    assert claimed is not None and claimed["boxes_until"] is not None

    done = boxes.move("succeed", "a", fence=claimed["boxes_fence"], values={"result": "text and boxes"})

    assert done is not None
    assert (done["status"], done["boxes_status"], done["result"]) == (
        "succeeded",
        "succeeded",
        "text and boxes",
    )


def test_it_fails_alone(boxes: Moves) -> None:
    boxes.move("claim", "a")
    row = boxes.move("fail", "a", fence=1, values={"boxes_error": "no_boxes"})

    assert row is not None
    assert (row["status"], row["result"], row["boxes_status"], row["boxes_error"]) == (
        "succeeded",
        "text",
        "failed",
        "no_boxes",
    )


def test_it_does_not_move_outside_its_main_states(
    documents: Transitions, boxes: Moves, engine: AnyEngine, table: str
) -> None:
    insert(engine, table, "b", boxes_status="pending")

    assert boxes.move("claim", "b") is None
    assert [row["id"] for row in boxes.take("claim", 10)] == ["a"]


def test_its_attempts_are_its_own_and_end(boxes: Moves, clock: DatabaseClock) -> None:
    """Three claims run stale; the reaper gives two back and ends the third."""
    for attempt in (1, 2):
        row = boxes.move("claim", "a")
        assert row is not None and (row["boxes_fence"], row["boxes_attempts"]) == (attempt, attempt)
        clock.advance(LEASE_S + 1)
        reaped = boxes.reap()
        assert [row["id"] for row in reaped.moved["requeue"]] == ["a"]
    boxes.move("claim", "a")
    clock.advance(LEASE_S + 1)
    refused = boxes.move_or_why("claim", "a")
    assert isinstance(refused, Refusal) and refused.reason == "spent"

    reaped = boxes.reap()

    (given_up,) = reaped.moved["give_up"]
    assert (given_up["status"], given_up["boxes_status"], given_up["attempts"]) == ("succeeded", "failed", 1)
    assert boxes.reap().moved == {"give_up": [], "requeue": []}
    clock.close()


def test_a_row_given_back_by_its_last_attempt_is_ended_too(
    boxes: Moves, engine: AnyEngine, table: str
) -> None:
    for fence in (1, 2, 3):
        boxes.move("claim", "a")
        boxes.move("requeue", "a", fence=fence)
    assert boxes.move("claim", "a") is None
    assert boxes.take("claim", 10) == []

    assert [row["id"] for row in boxes.reap().moved["give_up"]] == ["a"]


def test_it_begins_by_its_own_move_too(
    documents: Transitions, boxes: Moves, engine: AnyEngine, table: str
) -> None:
    insert(engine, table, "b", status="succeeded")

    row = boxes.move("ask", "b")

    assert row is not None and row["boxes_status"] == "pending"
    assert boxes.move("ask", "b") is None
