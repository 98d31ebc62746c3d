"""Of a user's orders that come to the same one is played, and only where the texts tell what comes to the same."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from fencerow_proof import Answer, Exploration, Played, Violation, explore

Script = Generator[Any, Answer, Any]

TABLES = """
CREATE TABLE left_side (id integer PRIMARY KEY, n integer NOT NULL);
CREATE TABLE right_side (id integer PRIMARY KEY, n integer NOT NULL);
"""
SETUP = """
DELETE FROM left_side; DELETE FROM right_side;
INSERT INTO left_side VALUES (1, 0); INSERT INTO right_side VALUES (1, 0);
"""
# A function of the user's, whom nobody calls: with it no text is trusted.
DISTRUST = "CREATE FUNCTION nothing() RETURNS integer LANGUAGE sql AS 'SELECT 1';"


def changing(table: str) -> Callable[[], Script]:
    """A transaction that reads one table and changes it by what it read."""

    def script() -> Script:
        yield "BEGIN"
        ((n,),) = (yield f"SELECT n FROM {table} WHERE id = 1").rows
        yield f"UPDATE {table} SET n = {n} + 1 WHERE id = 1"
        yield "COMMIT"
        return n

    return script


def outcomes(url: str, tables: str, **actors: Any) -> tuple[Exploration, set[str]]:
    found: set[str] = set()

    def note(played: Played) -> None:
        rows = [played.rows(f"SELECT n FROM {side}_side") for side in ("left", "right")]
        found.add(f"{sorted(played.results.items())} {rows}")

    told = explore(url, actors, tables=tables, setup=SETUP, check=note, orders_max=2000)
    assert told.complete
    return told, found


def test_actors_who_never_meet_are_played_once(pg_url: str) -> None:
    told, found = outcomes(pg_url, TABLES, a=changing("left_side"), b=changing("right_side"))

    assert (told.orders, told.reduced, len(found)) == (1, True, 1)
    assert "all 1 orders that are told apart" in str(told)


def test_no_outcome_is_left_out(pg_url: str) -> None:
    def both() -> Script:
        left = (yield "UPDATE left_side SET n = 7 WHERE id = 1 AND n = 0").count
        return left, (yield "UPDATE right_side SET n = 7 WHERE id = 1 AND n = 0").count

    actors = {"a": changing("left_side"), "b": both}
    reduced, some = outcomes(pg_url, TABLES, **actors)
    whole, every = outcomes(pg_url, DISTRUST, **actors)

    assert some == every and len(every) > 1
    assert reduced.reduced and not whole.reduced
    assert reduced.orders < whole.orders


def test_tables_that_refer_to_each_other_count_as_one(pg_url: str) -> None:
    refers = "ALTER TABLE right_side ADD FOREIGN KEY (id) REFERENCES left_side (id) ON DELETE CASCADE;"
    told, _ = outcomes(pg_url, TABLES + refers, a=changing("left_side"), b=changing("right_side"))

    assert told.orders > 10


def test_what_is_seen_between_two_transactions_is_not_left_out(pg_url: str) -> None:
    """Right before left is seen by the invariant only in one of two orders of steps that touch nothing in common."""

    def once(table: str) -> Callable[[], Script]:
        def script() -> Script:
            yield f"UPDATE {table} SET n = 1"

        return script

    actors = {"a": once("left_side"), "b": once("right_side")}
    ahead = "SELECT 1 FROM left_side, right_side WHERE right_side.n > left_side.n"

    with pytest.raises(Violation, match="in step"):
        explore(pg_url, actors, tables=TABLES, setup=SETUP, invariants={"in step": ahead})
    assert explore(pg_url, actors, setup=SETUP).orders == 1, "without it nobody can tell"


def test_a_snapshot_that_outlives_its_statement_leaves_nothing_out(pg_url: str) -> None:
    """What is taken with the first statement decides what the second one, on another table, sees."""

    def looks_twice() -> Script:
        yield "BEGIN ISOLATION LEVEL REPEATABLE READ"
        yield "SELECT n FROM left_side"
        ((n,),) = (yield "SELECT n FROM right_side").rows
        yield "COMMIT"
        return n

    told, found = outcomes(pg_url, TABLES, a=looks_twice, b=changing("right_side"))

    assert len(found) == 2 and not told.reduced


def test_in_a_file_all_orders_are_played(lite_url: str) -> None:
    def once(table: str) -> Callable[[], Script]:
        def script() -> Script:
            yield f"UPDATE {table} SET n = 1"

        return script

    told, _ = outcomes(lite_url, TABLES, a=once("left_side"), b=once("right_side"))

    assert told.orders > 1 and not told.reduced
