"""Migrations outside of a transaction: an index made concurrently, whoever dies in it and whoever waits beside."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from fencerow.db import leases
from fencerow.db.steady import steady
from fencerow.errors import InvalidMigrations, MigrationFailed, ShardBusy
from fencerow.migrations import Migrator, Outcome, Report
from fencerow.migrations.advance import (
    Aim,
    NotedMigration,
    OutsideTransaction,
    WaitReason,
    apply_next,
    finish,
    renew,
)
from fencerow.migrations.folder import read_folder
from fencerow.migrations.ledger import Ledger
from fencerow.migrations.shard import declared
from fencerow.testing.postgres import PostgresServer
from tests.kit.pace import slower
from tests.migrations import runner
from tests.migrations.conftest import Ground
from tests.migrations.runner import killed, start

TABLE = {"0001_big.sql": "CREATE TABLE big (id integer); INSERT INTO big SELECT generate_series(1, 1000);"}
INDEX = {
    "0002_index.sql": "-- migrate: no transaction\nCREATE INDEX CONCURRENTLY big_id ON big (id);",
    "0002_index.down.sql": "-- migrate: no transaction\nDROP INDEX CONCURRENTLY big_id;",
}
UNDER_WAY = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
    " AND query LIKE '/* fencerow schema_ledger 2 */ CREATE%'"
)

UNTIL_RENEWED = """# migrate: no transaction
import time
from tests.kit.pace import PATIENCE_S


def up(connection):
    began, deadline = lease(connection), time.monotonic() + PATIENCE_S
    while lease(connection) == began:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    connection.execute("CREATE TABLE slow (id INTEGER)")


def lease(connection):
    return connection.execute("SELECT lease_until FROM schema_ledger WHERE version = 1").fetchone()
"""


def migrator(ground: Ground, **options: Any) -> Migrator:
    return Migrator({"a": ground.urls["a"]}, ground.folder, **options)


@contextmanager
def an_old_snapshot(ground: Ground) -> Iterator[None]:
    """Somebody reads, and goes on to: an index that is made concurrently waits for him before it becomes valid."""
    with psycopg.connect(ground.urls["a"]) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM big")
        yield
        reader.close()


def until(ground: Ground, text: str) -> Any:
    """Wait until a statement finds something."""
    deadline = time.monotonic() + 90
    while not (rows := ground.rows(text)):
        assert time.monotonic() < deadline, text
        time.sleep(0.01)
    return rows[0][0]


def index(ground: Ground) -> list[bool]:
    return [
        row[0]
        for row in ground.rows("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('big_id')")
    ]


def lease_passed(ground: Ground) -> None:
    ground.rows("UPDATE schema_ledger SET lease_until = now() - interval '1 second' WHERE state <> 'applied'")


@pytest.fixture
def cut_off(pg_ground: Ground) -> Iterator[tuple[Ground, int]]:
    """A migrator was killed while the server made the index; its backend still waits for an old snapshot."""
    pg_ground.write(TABLE)
    migrator(pg_ground).migrate()
    pg_ground.write(INDEX)
    with an_old_snapshot(pg_ground):
        process, _ = start({"a": pg_ground.urls["a"]}, pg_ground.folder)
        pid = until(pg_ground, UNDER_WAY)
        process.kill()
        assert killed(process)
        yield pg_ground, pid


def test_an_invalid_index_is_dropped_and_made_again_beside_a_waiter(
    cut_off: tuple[Ground, int], server: PostgresServer
) -> None:
    ground, pid = cut_off
    assert index(ground) == [False]
    assert ground.ledger() == [(1, "applied"), (2, "started")]
    waiter, heard = in_a_thread(ground)
    with server.connect() as owner:
        owner.execute("SELECT pg_terminate_backend(%s)", [pid])
    lease_passed(ground)
    # The old reader ends while the waiter, who has taken over and drops what is left, waits for him.
    until(ground, f"{UNDER_WAY.replace('CREATE', 'DROP')} AND pid <> {pid}")
    end_readers(ground, server)

    waiter.join(60)

    assert heard[0].ok and heard[0]["a"].ran == ("0002_index",)
    assert index(ground) == [True] and ground.ledger() == [(1, "applied"), (2, "applied")]


def test_an_index_that_became_valid_after_all_is_adopted(
    cut_off: tuple[Ground, int], server: PostgresServer
) -> None:
    ground, _ = cut_off
    oid = ground.rows("SELECT CAST(to_regclass('big_id') AS oid)")
    lease_passed(ground)
    waiter, heard = in_a_thread(ground)  # the server still runs the dead one's statement, so it waits
    end_readers(ground, server)
    waiter.join(60)

    assert heard[0].ok and heard[0]["a"].ran == ("0002_index",)
    assert index(ground) == [True]
    assert ground.rows("SELECT CAST(to_regclass('big_id') AS oid)") == oid


def test_nothing_is_taken_over_while_the_server_still_runs_it(cut_off: tuple[Ground, int]) -> None:
    ground, _ = cut_off
    assert advanced(ground) is WaitReason.LEASE
    lease_passed(ground)
    assert advanced(ground) is WaitReason.SERVER
    report = migrator(ground, wait_s=0.1).migrate()["a"]
    assert report.outcome is Outcome.BUSY and isinstance(report.error, ShardBusy)
    assert "server still runs" in report.error.why and report.begun == "0002_index"


def test_an_index_is_made_beside_a_waiter(pg_ground: Ground, server: PostgresServer) -> None:
    """A waiter inside a transaction would be one more that the index waits for, and it for the index."""
    pg_ground.write(TABLE)
    migrator(pg_ground).migrate()
    pg_ground.write(INDEX)
    with an_old_snapshot(pg_ground):
        first, told = in_a_thread(pg_ground)
        until(pg_ground, UNDER_WAY)
        second, heard = in_a_thread(pg_ground)
        end_readers(pg_ground, server)
        first.join(60)
        second.join(60)

    assert told[0].ok and heard[0].ok
    assert sorted([*told[0]["a"].ran, *heard[0]["a"].ran]) == ["0002_index"]
    assert index(pg_ground) == [True]


def test_a_step_back_outside_of_a_transaction(pg_ground: Ground) -> None:
    pg_ground.write(TABLE | INDEX)
    assert migrator(pg_ground).migrate().ok

    assert migrator(pg_ground).down(1)["a"].ran == ("0002_index",)
    assert index(pg_ground) == [] and pg_ground.ledger() == [(1, "applied")]
    assert migrator(pg_ground).migrate()["a"].ran == ("0002_index",)


def test_what_fails_outside_of_a_transaction_is_corrected_and_begun_again(ground: Ground) -> None:
    ground.write({"0001_table.sql": "CREATE TABLE big (id INTEGER)"})
    good = "-- migrate: no transaction\nCREATE INDEX IF NOT EXISTS big_id ON big (id);\n"
    bad = f"{good}\nCREATE INDEX worse ON nowhere (id);"
    ground.write({"0002_index.sql": bad})

    report = migrator(ground).migrate()["a"]
    assert isinstance(report.error, MigrationFailed) and "0002_index.sql, line 4" in report.error.what
    assert report.begun == "0002_index" and report.left == ("0002_index",)

    ground.write({"0002_index.sql": bad.replace("nowhere", "big")})
    assert migrator(ground).migrate()["a"].ran == ("0002_index",), "it is not held, and no edit of what ran"
    assert ground.ledger() == [(1, "applied"), (2, "applied")]


def test_an_invalid_index_of_somebody_else_is_not_taken_for_a_good_one(pg_ground: Ground) -> None:
    """IF NOT EXISTS would see its name and be content."""
    pg_ground.write({"0001_big.sql": "CREATE TABLE big (id integer); INSERT INTO big VALUES (1), (1);"})
    migrator(pg_ground).migrate()
    with pytest.raises(psycopg.errors.UniqueViolation):
        pg_ground.rows("CREATE UNIQUE INDEX CONCURRENTLY big_id ON big (id)")
    assert index(pg_ground) == [False]
    pg_ground.write(
        {
            "0002_index.sql": "-- migrate: no transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS big_id ON big (id);"
        }
    )

    assert migrator(pg_ground).migrate().ok
    assert index(pg_ground) == [True]


def test_an_index_without_a_name_is_refused(pg_ground: Ground) -> None:
    pg_ground.write({"0001_index.sql": "-- migrate: no transaction\nCREATE INDEX CONCURRENTLY ON big (id);"})
    with pytest.raises(InvalidMigrations, match="line 2: an index"):
        migrator(pg_ground)


def test_a_holder_that_lost_its_lease_can_note_nothing(ground: Ground) -> None:
    """It was stopped, another took over; then it goes on."""
    ground.write(TABLE if ground.dialect == "postgres" else {"0001_big.sql": "CREATE TABLE big (id INTEGER)"})
    migrator(ground).migrate()
    ground.write(
        {"0002_index.sql": "-- migrate: no transaction\nCREATE INDEX IF NOT EXISTS big_id ON big (id);"}
    )
    late, fresh = aim(ground, "late"), aim(ground, "fresh")
    taken = on_shard(ground, late, apply_next(late))
    assert isinstance(taken, OutsideTransaction) and not taken.resumed
    assert on_shard(ground, fresh, apply_next(fresh)) is WaitReason.LEASE
    past = "now() - interval '1 second'" if ground.dialect == "postgres" else "0"
    ground.rows(f"UPDATE schema_ledger SET lease_until = {past} WHERE version = 2")
    again = on_shard(ground, fresh, apply_next(fresh))
    assert isinstance(again, OutsideTransaction) and again.resumed and again.attempt == taken.attempt + 1

    assert not on_shard(ground, late, renew(late, taken, 30.0))
    assert not on_shard(ground, late, finish(late, taken))
    assert on_shard(ground, fresh, finish(fresh, again))
    assert ground.ledger() == [(1, "applied"), (2, "applied")]


def test_a_lease_is_renewed_while_a_step_runs(ground: Ground) -> None:
    """The step waits for that itself: it goes on when its lease lasts longer than it did."""
    ground.write({"0001_slow.py": UNTIL_RENEWED})
    assert migrator(ground, lease_s=slower(10.0)).migrate().ok
    assert ground.has("slow")


def test_a_machine_that_slept_in_the_middle_of_a_step_does_not_go_on(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease has run out meanwhile, however short its own process thinks that it was away."""
    slept = [0.0]
    monkeypatch.setattr(leases, "steady", lambda: steady() + slept[0])
    monkeypatch.setattr(runner, "fall_asleep", lambda: slept.__setitem__(0, 60.0), raising=False)
    ground.write(
        {
            "0001_nap.py": (
                "# migrate: no transaction\nfrom tests.migrations import runner\n"
                "def up(connection):\n    runner.fall_asleep()\n"
            )
        }
    )

    report = migrator(ground).migrate()["a"]

    assert report.outcome is Outcome.BUSY and isinstance(report.error, ShardBusy)
    assert ground.ledger() == [(1, "started")]


def test_a_statement_is_given_up_when_its_lease_cannot_be_renewed(pg_ground: Ground) -> None:
    """The renewal hangs, and tells nothing: the belief ends all the same, before another may take over."""
    pg_ground.write({"0001_slow.sql": "-- migrate: no transaction\nSELECT pg_sleep(600);"})
    heard: list[Report] = []
    thread = threading.Thread(target=lambda: heard.append(migrator(pg_ground, lease_s=2.0).migrate()))
    thread.start()
    until(pg_ground, UNDER_WAY.replace("2 */ CREATE", "1 */ SELECT"))
    with psycopg.connect(pg_ground.urls["a"]) as locker:
        locker.execute("SELECT version FROM schema_ledger FOR UPDATE")
        thread.join(60)
        assert not thread.is_alive()

    assert isinstance(heard[0]["a"].error, ShardBusy)
    assert pg_ground.ledger() == [(1, "started")]


def aim(ground: Ground, holder: str) -> Aim:
    return Aim(Ledger.of("schema_ledger"), ground.dialect, read_folder(ground.folder, ground.dialect), holder)


def on_shard(ground: Ground, wanted: Aim, operation: Any) -> Any:
    shard = declared(ground.urls["a"])["main"].connect(
        wanted.ledger, connect_timeout_s=5.0, busy_timeout_s=5.0
    )
    try:
        return shard.run(operation)
    finally:
        shard.close()


def advanced(ground: Ground) -> NotedMigration | OutsideTransaction | WaitReason | None:
    wanted = aim(ground, "looking")
    found: NotedMigration | OutsideTransaction | WaitReason | None = on_shard(
        ground, wanted, apply_next(wanted)
    )
    return found


def in_a_thread(ground: Ground) -> tuple[threading.Thread, list[Report]]:
    heard: list[Report] = []
    thread = threading.Thread(target=lambda: heard.append(migrator(ground).migrate()))
    thread.start()
    return thread, heard


def end_readers(ground: Ground, server: PostgresServer) -> None:
    """The old reader goes."""
    with server.connect() as owner:
        owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE state = 'idle in transaction' AND query LIKE 'SELECT count(*) FROM big%'"
        )
