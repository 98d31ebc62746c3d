"""Attempts at one lane of a backfill against each other, a pause and a resume: each range is done once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pytest

from fencerow.core.store.tables import postgres_queries, sqlite_queries
from fencerow.db.queries import Query
from fencerow.db.run import Operation, Rows, Statement, Steps
from fencerow.migrations.backfills import operations as backfills
from fencerow.migrations.backfills.operations import BackfillSource, Range, Walk
from fencerow_proof.arena.actor import Abandoned, Actor, Script, transaction
from fencerow_proof.arena.crash import Point, points
from fencerow_proof.arena.race import Scenario, Story, perform
from tests.proof.race.conftest import Cut, Race, in_modes

# On PostgreSQL in our schema, where the explorer's role may make it.
ROWS = {"sqlite": "race_rows"}
BATCH = 2
IDS = (1, 2, 3, 4)


def rows_of(mode: str) -> str:
    return ROWS.get(mode, "fencerow.race_rows")


def source_of(mode: str) -> BackfillSource:
    return BackfillSource.of(rows_of(mode), "id")


@lru_cache
def queries_of(mode: str) -> Any:
    return sqlite_queries() if mode == "sqlite" else postgres_queries()


def raw(text: str) -> Operation[Rows]:
    def steps() -> Steps[Rows]:
        return (yield Statement("raw", {}, Query("raw", (text,), ())))

    return Operation("raw", steps)


def one_range(walk: Walk, mode: str) -> Operation[Range | bool | None]:
    """As the job does it: lock the lane, find the range, write, note it; False when the note was refused."""
    queries = queries_of(mode)

    def steps() -> Steps[Range | bool | None]:
        taken = yield from backfills.take(walk).steps()
        if taken is None:
            return None
        found = yield from backfills.next_range(taken, source_of(mode), BATCH, queries).steps()
        if found is None:
            return (yield from backfills.end(walk).steps())
        yield from raw(
            f"UPDATE {rows_of(mode)} SET met = met + 1 WHERE id BETWEEN {found.first} AND {found.last}"
        ).steps()
        if not (yield from backfills.move(walk, taken, found).steps()):
            raise Abandoned
        return found

    return transaction("one_range", steps)


def setup(mode: str) -> Any:
    def script() -> Script:
        table = rows_of(mode)
        yield raw(
            f"CREATE TABLE IF NOT EXISTS {table} (id integer PRIMARY KEY, met integer NOT NULL DEFAULT 0)"
        )
        yield raw(f"DELETE FROM {table}")
        yield raw(f"INSERT INTO {table} (id) VALUES {', '.join(f'({number})' for number in IDS)}")
        yield backfills.plan("fill", source_of(mode), 1, queries_of(mode))

    return script


def walking(attempt: int, mode: str, *, run: int = 1, rounds: int = 2) -> Actor:
    def script(_: Any) -> Script:
        done = []
        for _round in range(rounds):
            try:
                found = yield one_range(Walk("fill", 0, run, attempt), mode)
            except Abandoned:
                found = None
            if isinstance(found, Range):
                done.append(found.first)
        return done

    return Actor(f"attempt {attempt} of run {run}", script)


def steering(name: str, *operations: Operation[Any]) -> Actor:
    def script(_: Any) -> Script:
        yield from operations

    return Actor(name, script)


def met(story: Story) -> Sequence[int]:
    return [
        int(str(row[0])) for row in story.run(raw(f"SELECT met FROM {rows_of(story.arena.mode)} ORDER BY id"))
    ]


def once_each(story: Story) -> None:
    """Every row as often as the cursor says: once behind it, never before it."""
    (lane,) = story.run(backfills.lanes_of("fill"))
    cursor = int(lane.cursor or 0)
    assert met(story) == [1 if number <= cursor else 0 for number in IDS], (met(story), lane)
    assert lane.rows_done == cursor


def two_attempts(mode: str) -> Scenario:
    def all_done(story: Story) -> None:
        once_each(story)
        assert set(met(story)) == {1}

    both = [walking(1, mode), walking(2, mode)]
    return Scenario("backfill: stale attempt × newer", setup(mode), both, all_done)


def steered(mode: str) -> Scenario:
    orders = steering("operator", backfills.pause("fill"), backfills.resume("fill"))
    actors = [walking(1, mode), orders, walking(1, mode, run=2)]
    return Scenario("backfill: walk × pause × resume", setup(mode), actors, once_each)


@pytest.fixture(autouse=True)
def _fewer(race: Race) -> None:
    """These orders are long: a range is five statements."""
    race._limit = max(20, race._limit // 6)


def test_each_range_is_done_by_one_attempt(race: Race) -> None:
    race(two_attempts(race.mode))


def test_a_pause_and_a_resume_lose_no_range_and_repeat_none(race: Race) -> None:
    race(steered(race.mode))


@in_modes("plain", "held")
def test_without_the_lock_and_the_cursor_two_do_one_range(race: Race) -> None:
    """Taking is what locks; here it only looks. The cursor in the note then has to go as well.

    In a file whole transactions follow each other: there is no lock to leave out.
    """
    race.turns_red(
        two_attempts(race.mode),
        Cut(
            "take_backfill",
            (
                "UPDATE fencerow.backfills\nSET attempt = CAST(:attempt AS bigint)\nWHERE name",
                "SELECT kind, first_key, last_key, cursor, failures FROM fencerow.backfills\nWHERE name",
            ),
        ),
        Cut("take_backfill", ("\nRETURNING kind, first_key, last_key, cursor, failures", "")),
        Cut("take_backfill", ("AND attempt <= CAST(:attempt AS bigint)", "AND CAST(:attempt AS bigint) > 0")),
        Cut("move_backfill", ("AND attempt = CAST(:attempt AS bigint)", "AND CAST(:attempt AS bigint) > 0")),
        Cut(
            "move_backfill",
            (
                "AND cursor IS NOT DISTINCT FROM CAST(:cursor AS text)",
                "AND (CAST(:cursor AS text) IS NULL OR true)",
            ),
        ),
    )


def test_a_range_broken_anywhere_is_done_or_not(race: Race) -> None:
    arena: Any = race._arena
    walk = Walk("fill", 0, 1, attempt=1)
    for point in points(4, alone=False):
        arena.clear()
        perform(arena, setup(race.mode)())
        arena.break_at(one_range(walk, race.mode), point)
        story = Story(arena)
        once_each(story)
        assert met(story)[0] == (point == Point("committed")), point
        for _ in range(3):
            arena.run(one_range(Walk("fill", 0, 1, attempt=2), race.mode))
        assert set(met(story)) == {1}, point
