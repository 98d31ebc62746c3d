"""A migrator of a user's database, broken off at each point of a migration: whoever comes next goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencerow.migrations.advance import NotedMigration, apply_next, revert_next
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.arena.crash import Point, points
from fencerow_proof.arena.race import Scenario
from tests.proof.race.people import nothing
from tests.proof.race.shards import MIGRATIONS, ShardArena, aim, asked

UP, DOWN = 11, 8  # statements of a first migration and of one taken back, at most


@pytest.fixture
def arena(race_server: PostgresServer) -> Iterator[ShardArena]:
    made = ShardArena(race_server, "crash_shard", held=False)
    yield made
    made.close()
    race_server.drop_database("crash_shard")


def test_a_step_broken_anywhere_is_done_or_not(arena: ShardArena) -> None:
    for point in points(UP, alone=False):
        arena.fresh(Scenario("migration", nothing, [], lambda story: None))
        arena.break_at(apply_next(aim("postgres", "one")), point)
        assert trail(arena) == noted(arena), point

        rest(arena)

        assert trail(arena) == noted(arena) == [1, 2, 3], point


def test_a_step_back_broken_anywhere_is_done_or_not(arena: ShardArena) -> None:
    for point in points(DOWN, alone=False):
        arena.fresh(Scenario("taken back", nothing, [], lambda story: None))
        rest(arena)
        arena.break_at(revert_next(aim("postgres", "one"), 0), point)
        assert trail(arena) == noted(arena) == ([1, 2] if point == Point("committed") else trail(arena)), (
            point
        )

        rest(arena)

        assert trail(arena) == noted(arena) == [1, 2, 3], point


def rest(arena: ShardArena) -> None:
    for _ in MIGRATIONS:
        arena.run(apply_next(aim("postgres", "next")))
    assert not isinstance(arena.run(apply_next(aim("postgres", "next"))), NotedMigration)


def trail(arena: ShardArena) -> list[int]:
    return numbers(arena, "trail")


def noted(arena: ShardArena) -> list[int]:
    return numbers(arena, "schema_ledger")


def numbers(arena: ShardArena, table: str) -> list[int]:
    if not arena.run(asked(f"SELECT 1 FROM pg_tables WHERE tablename = '{table}'")):
        return []
    return sorted(int(str(row[0])) for row in arena.run(asked(f"SELECT version FROM {table}")))
