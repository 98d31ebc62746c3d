"""Many processes at once, and processes that are killed at each of their statements: no migration twice, none half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from fencerow.migrations import Migrator
from tests.kit.forking import context
from tests.migrations.conftest import Ground
from tests.migrations.runner import When, killed, start

TABLES = ("trail", "numbers", "more", "schema_ledger")
# Every migration leaves its number in the trail, in the transaction that notes it.
STEPS = {
    "0001_trail.sql": "CREATE TABLE trail (version INTEGER); INSERT INTO trail VALUES (1);",
    "0001_trail.down.sql": "DROP TABLE trail;",
    "0002_numbers.sql": (
        "CREATE TABLE numbers (number INTEGER);\nINSERT INTO numbers VALUES (1);\nINSERT INTO trail VALUES (2);"
    ),
    "0002_numbers.down.sql": "DELETE FROM trail WHERE version = 2; DROP TABLE numbers;",
    "0003_fill.py": (
        "def up(connection):\n"
        "    connection.execute('INSERT INTO numbers VALUES (2)')\n"
        "    connection.execute('INSERT INTO trail VALUES (3)')\n"
        "def down(connection):\n"
        "    connection.execute('DELETE FROM numbers WHERE number = 2')\n"
        "    connection.execute('DELETE FROM trail WHERE version = 3')\n"
    ),
}
APART = {
    "postgres/0004_index.sql": (
        "-- migrate: no transaction\nCREATE INDEX CONCURRENTLY numbers_number ON numbers (number);\n"
        "CREATE INDEX CONCURRENTLY numbers_twice ON numbers ((number * 2));"
    ),
    "postgres/0004_index.down.sql": (
        "-- migrate: no transaction\nDROP INDEX CONCURRENTLY numbers_number;\nDROP INDEX CONCURRENTLY numbers_twice;"
    ),
    "sqlite/0004_index.sql": (
        "-- migrate: no transaction\nCREATE INDEX IF NOT EXISTS numbers_number ON numbers (number);\nVACUUM;"
    ),
    "sqlite/0004_index.down.sql": "-- migrate: no transaction\nDROP INDEX IF EXISTS numbers_number;",
    "0005_more.sql": "CREATE TABLE more (id INTEGER); INSERT INTO trail VALUES (5);",
    "0005_more.down.sql": "DELETE FROM trail WHERE version = 5; DROP TABLE more;",
}
INSIDE = [1, 2, 3, 5]


@pytest.mark.prove
def test_eight_processes_run_each_step_of_four_shards_once(ground: Ground) -> None:
    ground.write(STEPS | APART)
    gate = context.Barrier(8)
    runners = [start(ground.urls, ground.folder, gate=gate, parallel=2) for _ in range(8)]

    told = [connection.recv()[0] for _, connection in runners]
    for process, _ in runners:
        process.join(30)

    assert all(shard["outcome"] == "done" for run in told for shard in run), told
    ran = Counter((shard["shard"], migration) for run in told for shard in run for migration in shard["ran"])
    assert len(ran) == 20 and set(ran.values()) == {1}
    for shard in "abcd":
        assert whole(ground, shard) and [version for version, _ in ground.ledger(shard)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("one_in", [4, pytest.param(1, marks=pytest.mark.prove)])
def test_a_process_killed_at_any_statement_leaves_whole_steps(ground: Ground, one_in: int) -> None:
    ground.write(STEPS | APART)
    points = 0
    for when, number in list(each_point(ground))[::one_in]:
        clear(ground)
        process, _ = start({"a": ground.urls["a"]}, ground.folder, die=(when, number))
        assert killed(process), (when, number)
        assert whole(ground), f"half a migration after a kill {when} statement {number}"
        let_leases_pass(ground)
        assert migrator(ground).migrate().ok, (when, number)
        assert whole(ground) and ground.ledger() == [(version, "applied") for version in (1, 2, 3, 4, 5)]
        assert indexes(ground)
        points += 1

    assert points > 50 / one_in


def test_a_process_killed_on_its_way_back_leaves_whole_steps(ground: Ground) -> None:
    ground.write(STEPS | APART)
    migrator(ground).migrate()
    process, connection = start({"a": ground.urls["a"]}, ground.folder, down=0)
    statements = connection.recv()[1]
    process.join(30)

    for number in range(1, statements + 1, 2):
        assert migrator(ground).migrate().ok
        process, _ = start({"a": ground.urls["a"]}, ground.folder, down=0, die=("after", number))
        assert killed(process), number
        assert whole(ground), f"half a migration after a kill after statement {number}"
        let_leases_pass(ground)
        assert migrator(ground).down(0).ok
        assert ground.ledger() == [] and not ground.has("trail")


def test_a_ledger_written_in_another_transaction_would_be_caught(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: the migration is committed, and its line comes later."""
    ground.write(STEPS)
    found = []
    for number in range(1, 40):
        clear(ground)
        process, _ = start({"a": ground.urls["a"]}, ground.folder, die=("before", number), broken=True)
        if not killed(process):
            break
        found.append(whole(ground))
        if False in found:
            break
    assert False in found


def each_point(ground: Ground) -> Iterator[tuple[When, int]]:
    """Before and after each statement of a run that nobody disturbs."""
    process, connection = start({"a": ground.urls["a"]}, ground.folder)
    statements: int = connection.recv()[1]
    process.join(30)
    for number in range(1, statements + 1):
        yield "before", number
    yield "after", statements


def whole(ground: Ground, shard: str = "a") -> bool:
    """Whether the trail and the ledger name the same migrations, each once, at one instant."""
    if not ground.has("trail", shard):
        return not ground.has("schema_ledger", shard) or 1 not in dict(ground.ledger(shard))
    rows: list[Any] = ground.rows(
        "SELECT 'trail', version FROM trail UNION ALL SELECT 'ledger', version FROM schema_ledger"
        " WHERE state = 'applied' AND version <> 4",
        shard,
    )
    trail = sorted(version for kind, version in rows if kind == "trail")
    return trail == sorted(version for kind, version in rows if kind == "ledger") and len(set(trail)) == len(
        trail
    )


def indexes(ground: Ground) -> bool:
    """Whether those of the migration outside of a transaction are there and valid."""
    if ground.dialect == "sqlite":
        return ground.has("numbers_number")
    rows = ground.rows("SELECT indisvalid FROM pg_index WHERE indrelid = 'numbers'::regclass")
    return rows == [(True,), (True,)]


def let_leases_pass(ground: Ground) -> None:
    """Time moves on beyond the lease of whoever was killed."""
    if ground.has("schema_ledger"):
        past = "now() - interval '1 second'" if ground.dialect == "postgres" else "0"
        ground.rows(f"UPDATE schema_ledger SET lease_until = {past} WHERE state <> 'applied'")


def clear(ground: Ground) -> None:
    for table in TABLES:
        ground.rows(f"DROP TABLE IF EXISTS {table}")


def migrator(ground: Ground) -> Migrator:
    return Migrator({"a": ground.urls["a"]}, ground.folder)
