"""Taking several rows at once: never more than asked for, the stale first, the locked left out."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from typing import Any

import psycopg
import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import Query
from fencerow.errors import InvalidMove
from fencerow.guards.transitions import Transitions
from fencerow.guards.transitions.composing import Written
from fencerow.testing.clock import DatabaseClock
from tests.guards.transitions.tables import LEASE_S, AtEngine, create, extractions, insert, sql
from tests.kit.jobs import AnyEngine


def ids(rows: list[dict[str, object]]) -> list[str]:
    return sorted(str(row["id"]) for row in rows)


def test_no_more_are_taken_than_asked_for_in_their_order(
    documents: Transitions, engine: AnyEngine, table: str
) -> None:
    insert(engine, table, "c", "b", "a")

    assert ids(documents.take("claim", 2)) == ["a", "b"]
    assert ids(documents.take("claim", 2)) == ["c"]
    assert documents.take("claim", 2) == []


def test_the_stale_come_first_and_count_an_attempt(
    documents: Transitions, engine: AnyEngine, table: str, clock: DatabaseClock
) -> None:
    insert(engine, table, "z")
    documents.take("claim")
    clock.advance(LEASE_S + 1)
    insert(engine, table, "a")

    (taken,) = documents.take("claim", 1)

    assert (taken["id"], taken["attempts"]) == ("z", 2)
    assert ids(documents.take("claim", 5)) == ["a"]
    clock.close()


def test_a_condition_holds_for_many(documents: Transitions, engine: AnyEngine, table: str) -> None:
    insert(engine, table, "a", tenant="x")
    insert(engine, table, "b", tenant="y")
    insert(engine, table, "c")

    assert ids(documents.take("claim_of_tenant", 5, params={"tenant": "x"})) == ["a", "c"]


def test_what_needs_a_fence_is_not_done_with_many(documents: Transitions) -> None:
    with pytest.raises(InvalidMove, match="one by one"):
        documents.take("succeed", 5)
    with pytest.raises(InvalidMove, match="count"):
        documents.take("claim", 0)


def test_locked_rows_are_left_out_instead_of_waited_for(pg: PostgresEngine) -> None:
    table = create(pg)
    documents = extractions(AtEngine(pg), table)
    insert(pg, table, "a", "b")
    with psycopg.connect(pg.conninfo) as stranger:
        stranger.execute(f"SELECT FROM {table} WHERE id = 'a' FOR UPDATE")

        assert ids(documents.take("claim", 5)) == ["b"]
    assert ids(documents.take("claim", 5)) == ["a"]


def test_a_limit_holds_under_the_plan_that_breaks_others(pg: PostgresEngine) -> None:
    """Under a nested loop an IN (SELECT … LIMIT) takes every row."""
    table = create(pg)
    insert(pg, table, *(f"r{number:02}" for number in range(50)))

    assert taken_under_a_nested_loop(pg, extractions(AtEngine(pg), table)) == 1


def test_it_does_not_where_the_rows_are_chosen_in_a_subselect(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above."""
    whole = Written.composed

    def naive(self: Written, name: str, text: str) -> Query:
        text = text.replace("= ANY(ARRAY(SELECT", "IN (SELECT").replace("SKIP LOCKED))", "SKIP LOCKED)")
        return whole(self, name, text)

    monkeypatch.setattr(Written, "composed", naive)
    table = create(pg)
    insert(pg, table, *(f"r{number:02}" for number in range(50)))

    with pytest.raises(AssertionError, match="more rows were taken than asked for"):
        taken_under_a_nested_loop(pg, extractions(AtEngine(pg), table))


def taken_under_a_nested_loop(pg: PostgresEngine, documents: Transitions) -> int:
    with psycopg.connect(pg.conninfo) as mine:
        for off in ("hashjoin", "mergejoin", "hashagg", "material", "memoize"):
            mine.execute(f"SET enable_{off} = off")
        return len(documents.take("claim", 1, connection=mine))


def test_of_ten_who_race_each_row_has_one_winner(engine: AnyEngine) -> None:
    """On ten connections of their own, all released at once: by id, and by taking."""
    table = create(engine, name="raced")
    rows = [f"r{number}" for number in range(20)]
    insert(engine, table, *rows)
    barrier = threading.Barrier(10)
    won: list[str] = []
    failed: list[BaseException] = []

    def racer() -> None:
        documents = extractions(AtEngine(engine), table)
        with closing(connection_to(engine)) as mine:
            barrier.wait(20)
            won.extend(row_id for row_id in rows[:10] if documents.move("claim", row_id, connection=mine))
            while taken := documents.take("claim", 2, connection=mine):
                won.extend(str(row["id"]) for row in taken)

    def noted() -> None:
        try:
            racer()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=noted) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failed == []
    # Who met only locked rows has left; what is then still queued nobody has taken twice.
    left = extractions(AtEngine(engine), table).take("claim", 20)
    assert sorted([*won, *(str(row["id"]) for row in left)]) == sorted(rows)
    assert set(sql(engine, f"SELECT DISTINCT attempts FROM {table}")) == {(1,)}


def connection_to(engine: AnyEngine) -> Any:
    """A user's own, in autocommit."""
    if isinstance(engine, PostgresEngine):
        return psycopg.connect(engine.conninfo, autocommit=True, prepare_threshold=None)
    return sqlite3.connect(engine.path, isolation_level=None, timeout=30)
