"""What has been in a state for too long is found, and moved by whoever sweeps first."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from fencerow.guards.transitions import Lease, Move, Moves, Overdue, Transitions
from fencerow.testing.clock import DatabaseClock
from tests.guards.transitions.tables import LEASE_S, MARGIN_S, AtEngine, insert
from tests.kit.jobs import AnyEngine


def ago(engine: AnyEngine, seconds: float) -> object:
    """An instant as the table keeps it."""
    now = datetime.now(UTC).timestamp() - seconds
    return datetime.fromtimestamp(now, UTC) if engine.dialect == "postgres" else round(now * 1e6)


def test_each_state_has_its_own_age(
    documents: Transitions, boxes: Moves, engine: AnyEngine, table: str, clock: DatabaseClock
) -> None:
    insert(engine, table, "fresh", submitted_at=ago(engine, 0))
    insert(engine, table, "old", submitted_at=ago(engine, 1200))
    insert(engine, table, "asked", status="succeeded", boxes_status="pending", finished_at=ago(engine, 2400))
    documents.move("claim", "fresh")
    assert [stuck.id for stuck in documents.find_stuck()] == ["old"]

    clock.advance(LEASE_S + MARGIN_S)

    found = {stuck.id: stuck for stuck in [*documents.find_stuck(), *boxes.find_stuck()]}
    assert {key: (stuck.sub, stuck.state) for key, stuck in found.items()} == {
        "fresh": (None, "running"),
        "old": (None, "queued"),
        "asked": ("boxes", "pending"),
    }
    ages = {key: stuck.age_s for key, stuck in found.items()}
    assert ages["fresh"] == pytest.approx(LEASE_S + MARGIN_S, abs=MARGIN_S / 2)
    assert ages["old"] == pytest.approx(LEASE_S + MARGIN_S + 1200, abs=MARGIN_S / 2)
    assert ages["asked"] == pytest.approx(LEASE_S + MARGIN_S + 2400, abs=MARGIN_S / 2)
    clock.close()


def test_a_lease_that_nobody_stamped_is_stuck_and_not_taken(
    documents: Transitions, engine: AnyEngine, table: str, clock: DatabaseClock
) -> None:
    """Somebody wrote the state by hand: nobody knows since when, so nobody takes it away."""
    insert(engine, table, "a", status="running")
    clock.advance(1e6)

    (stuck,) = documents.find_stuck()

    assert (stuck.id, stuck.age_s) == ("a", None)
    assert documents.move("claim", "a") is None
    assert documents.take("claim", 5) == []
    clock.close()


async def test_the_chore_moves_what_is_past_its_time(
    documents: Transitions,
    boxes: Moves,
    engine: AnyEngine,
    table: str,
    clock: DatabaseClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    insert(engine, table, *"abc", status="succeeded", boxes_status="pending")
    await boxes.atake("claim", 3)
    clock.advance(LEASE_S + 1)
    chore = documents.reaper(every_s=7, count=2)

    with caplog.at_level(logging.INFO):
        assert await chore.tick() == 0.0  # there may be more
        assert await chore.tick() == 7

    assert len(await boxes.atake("claim", 5)) == 3
    assert "requeue moved 2 rows" in caplog.text
    clock.close()


def test_an_overdue_row_is_moved_where_that_is_declared(
    engine: AnyEngine, table: str, clock: DatabaseClock
) -> None:
    imports = Transitions(
        AtEngine(engine),
        table=table,
        column="status",
        states=["waiting", "failed"],
        moves=[Move("expire", "waiting", "failed", stamps="finished_at")],
        overdue=[Overdue("waiting", "submitted_at", 3600, move="expire")],
    )
    insert(engine, table, "a", status="waiting", submitted_at=ago(engine, 0))
    assert imports.reap().moved == {"expire": []}

    clock.advance(3601)

    assert [row["id"] for row in imports.reap().moved["expire"]] == ["a"]
    clock.close()


def test_a_renewed_row_is_not_reaped(
    boxes: Moves, engine: AnyEngine, table: str, clock: DatabaseClock
) -> None:
    insert(engine, table, "a", status="succeeded", boxes_status="pending")
    boxes.move("claim", "a")
    clock.advance(LEASE_S - MARGIN_S)
    assert boxes.renew("claim", "a", fence=1) is not None
    clock.advance(LEASE_S - MARGIN_S)

    assert boxes.reap().moved == {"give_up": [], "requeue": []}
    clock.close()


def test_the_same_lease_may_be_kept_as_text_or_seconds(engine: AnyEngine, clock: DatabaseClock) -> None:
    kinds = {
        "postgres": ["timestamptz", "timestamp(3)", "bigint", "double precision"],
        "sqlite": ["INTEGER", "TEXT", "DATETIME", "REAL"],
    }
    where = "fencerow.runs" if engine.dialect == "postgres" else "runs"
    for kind in kinds[engine.dialect]:
        with engine.session() as session:
            session.connection.execute(f"DROP TABLE IF EXISTS {where}")
            session.connection.execute(
                f"CREATE TABLE {where} (id text PRIMARY KEY, state text, fence integer, till {kind}, begun {kind})"
            )
            session.connection.execute(f"INSERT INTO {where} VALUES ('a', 'init', NULL, NULL, NULL)")
        for lease in (
            Lease(lease_s=LEASE_S, until="till", fence="fence"),
            Lease(lease_s=LEASE_S, since="begun", fence="fence"),
        ):
            runs = Transitions(
                AtEngine(engine),
                table=where,
                column="state",
                states=["init", "running"],
                moves=[Move("claim", "init", "running", lease=lease), Move("back", "running", "init")],
            )
            row = runs.move("claim", "a")
            assert row is not None
            clock.advance(LEASE_S - MARGIN_S)
            assert runs.move("claim", "a") is None, kind
            assert runs.find_stuck() == []
            clock.advance(2 * MARGIN_S)
            (stuck,) = runs.find_stuck()
            age_s = MARGIN_S if lease.until else LEASE_S + MARGIN_S
            assert stuck.age_s is not None and stuck.age_s == pytest.approx(age_s, abs=MARGIN_S / 2)
            again = runs.move("claim", "a")
            assert again is not None, kind
            assert runs.move("back", "a", fence=again["fence"]) is not None
    clock.close()
