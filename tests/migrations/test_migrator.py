"""What a migrator does with one shard: order, checksums, ways back, plans, and databases that are not ours to guess."""

from __future__ import annotations

import pytest

from fencerow.errors import (
    InvalidMigrations,
    LedgerMissing,
    LedgerUnreadable,
    MigrationEdited,
    MigrationFailed,
    MigrationLate,
    MigrationMissing,
    RevertRefused,
)
from fencerow.migrations import Migrator, Outcome
from tests.migrations.conftest import Ground

ONE = {
    "0001_create_messages.sql": "CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT);",
    "0001_create_messages.down.sql": "DROP TABLE messages;",
}
TWO = {
    "0002_fill.py": (
        "def up(connection):\n"
        "    connection.execute(\"INSERT INTO messages (id, body) VALUES (1, 'hello; world')\")\n"
        "def down(connection):\n"
        "    connection.execute('DELETE FROM messages')\n"
    )
}
THREE = {
    "0003_index.sql": "-- two\nCREATE INDEX messages_body ON messages (body);\nCREATE TABLE third (id INTEGER);",
    "0003_index.down.sql": "DROP INDEX messages_body; DROP TABLE third;",
}


def migrator(ground: Ground, **options: object) -> Migrator:
    return Migrator({"a": ground.urls["a"]}, ground.folder, **options)  # type: ignore[arg-type]


def test_steps_run_once_and_in_order_and_go_back_one_by_one(ground: Ground) -> None:
    ground.write(ONE | TWO | THREE)

    first = migrator(ground).migrate()
    second = migrator(ground).migrate()

    assert first.ok and first["a"].ran == ("0001_create_messages", "0002_fill", "0003_index")
    assert second.ok and second["a"].ran == () and second["a"].at == 3
    assert ground.rows("SELECT body FROM messages") == [("hello; world",)]

    back = migrator(ground).down(1)

    assert back.ok and back["a"].ran == ("0003_index", "0002_fill")
    assert ground.ledger() == [(1, "applied")]
    assert not ground.has("third") and ground.rows("SELECT count(*) FROM messages") == [(0,)]
    assert migrator(ground).migrate()["a"].ran == ("0002_fill", "0003_index")


def test_a_plan_and_a_status_change_nothing(ground: Ground) -> None:
    ground.write(ONE | TWO)
    plan = migrator(ground).plan()

    assert plan["a"].left == ("0001_create_messages", "0002_fill")
    assert plan["a"].outcome is Outcome.PENDING and plan.ok
    assert not ground.has("schema_ledger")
    migrator(ground).migrate(to=1)
    assert migrator(ground).status()["a"].left == ("0002_fill",)


def test_steps_run_in_the_order_of_their_numbers(ground: Ground) -> None:
    """As text, 10 would come before 9."""
    ground.write(
        {"9_nine.sql": "CREATE TABLE nine (id INTEGER)", "10_ten.sql": "ALTER TABLE nine ADD ten INTEGER"}
    )

    assert migrator(ground).migrate()["a"].ran == ("0009_nine", "0010_ten")


def test_a_failing_step_leaves_whole_steps_and_says_where(ground: Ground) -> None:
    ground.write(ONE)
    ground.write({"0002_bad.sql": "CREATE TABLE half (id INTEGER);\n\nINSERT INTO nowhere\nVALUES (1);"})

    report = migrator(ground).migrate()["a"]

    assert report.outcome is Outcome.FAILED and report.at == 1 and report.left == ("0002_bad",)
    assert isinstance(report.error, MigrationFailed)
    assert "0002_bad.sql, line 3 failed on shard a" in report.error.what and "nowhere" in report.error.why
    assert not ground.has("half")
    ground.write({"0002_bad.sql": "CREATE TABLE whole (id INTEGER)"})
    assert migrator(ground).migrate()["a"].ran == ("0002_bad",)


def test_a_failing_function_leaves_nothing(ground: Ground) -> None:
    ground.write(ONE)
    ground.write(
        {
            "0002_bad.py": "def up(c):\n    c.execute('CREATE TABLE half (id INTEGER)')\n    raise KeyError('x')"
        }
    )

    report = migrator(ground).migrate()["a"]

    assert isinstance(report.error, MigrationFailed) and "KeyError" in report.error.why
    assert not ground.has("half") and report.at == 1


def test_an_edited_migration_is_named_with_both_checksums(ground: Ground) -> None:
    ground.write(ONE)
    migrator(ground).migrate()
    ran = migrator(ground).migrations(ground.dialect)[0].checksum
    ground.write({"0001_create_messages.sql": "CREATE TABLE messages (id INTEGER PRIMARY KEY);"} | TWO)
    now = migrator(ground).migrations(ground.dialect)[0].checksum

    for report in (migrator(ground).migrate(), migrator(ground).plan(), migrator(ground).down(0)):
        error = report["a"].error
        assert isinstance(error, MigrationEdited)
        assert "0001_create_messages.sql" in str(error) and ran[:12] in str(error) and now[:12] in str(error)
    assert ground.ledger() == [(1, "applied")]


def test_line_endings_are_no_edit(ground: Ground) -> None:
    ground.write(THREE | ONE)
    migrator(ground).migrate()
    path = ground.folder / "0003_index.sql"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert migrator(ground).migrate().ok


def test_a_step_whose_file_is_gone_is_an_error_unless_newer_code_ran_it(ground: Ground) -> None:
    ground.write(ONE | TWO | THREE)
    migrator(ground).migrate()
    ground.write({"0003_index.sql": "", "0003_index.down.sql": ""})

    older = migrator(ground).migrate()["a"]
    assert older.outcome is Outcome.DONE and older.ahead == ("0003_index",)
    assert isinstance(migrator(ground).down(1)["a"].error, RevertRefused)

    ground.write(THREE | {"0002_fill.py": ""})
    assert isinstance(migrator(ground).migrate()["a"].error, MigrationMissing)


def test_a_late_number_is_refused_unless_allowed(ground: Ground) -> None:
    ground.write(ONE | THREE)
    migrator(ground).migrate()
    ground.write(TWO)

    refused = migrator(ground).migrate()["a"]
    assert isinstance(refused.error, MigrationLate) and "0002_fill.py" in refused.error.what
    assert migrator(ground, out_of_order=True).migrate()["a"].ran == ("0002_fill",)


def test_no_way_back_is_seen_before_the_first_step_back(ground: Ground) -> None:
    ground.write(ONE | TWO | THREE | {"0001_create_messages.down.sql": ""})
    migrator(ground).migrate()

    report = migrator(ground).down(0)["a"]

    assert isinstance(report.error, RevertRefused) and "0001_create_messages" in report.error.what
    assert len(ground.ledger()) == 3


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"0001_a.sql": "SELECT 1", "1_b.sql": "SELECT 1"}, "have one number"),
        (
            {"0001_a.sql": "SELECT 1", "postgres/0001_b.sql": "SELECT 1", "sqlite/0001_b.sql": "SELECT 1"},
            "one number",
        ),
        ({"0001_a.sql": "SELECT 1", "create.sql": "SELECT 1"}, "not named like a migration"),
        ({"0001_a.sql": "SELECT 1", "0002_b.down.sql": "SELECT 1"}, "not there"),
        ({"0001_a.sql": "SELECT 1;\nCOMMIT;"}, "line 2: COMMIT"),
        ({"0001_a.sql": "BEGIN;\nSELECT 1;"}, "line 1: BEGIN"),
        ({"0001_a.py": "x = 1"}, "no function up"),
        ({"0001_a.py": "async def up(c): ..."}, "coroutine"),
        ({"0001_a.py": "1 / 0"}, "ZeroDivisionError"),
        ({"0000_a.sql": "SELECT 1"}, "number 0"),
        ({"README.txt": "nothing"}, "has no migrations"),
    ],
)
def test_a_folder_that_cannot_be_right_is_refused_before_anything_runs(
    ground: Ground, files: dict[str, str], told: str
) -> None:
    ground.write(files)
    with pytest.raises(InvalidMigrations, match=told):
        migrator(ground).migrate()
    assert not ground.has("schema_ledger")


def test_each_dialect_has_steps_of_its_own(ground: Ground) -> None:
    ground.write(ONE)
    ground.write(
        {f"{each}/0002_only.sql": f"CREATE TABLE only_{each} (id INTEGER)" for each in ("postgres", "sqlite")}
    )

    assert migrator(ground).migrate().ok
    assert ground.has(f"only_{ground.dialect}")


def test_tables_without_a_ledger_need_a_baseline(ground: Ground) -> None:
    ground.rows("CREATE TABLE messages (id INTEGER, body TEXT)")
    ground.write(ONE | TWO)

    for report in (migrator(ground).migrate(), migrator(ground).plan()):
        assert isinstance(report["a"].error, LedgerMissing) and "messages" in report["a"].error.what
    assert not ground.has("schema_ledger")
    with pytest.raises(InvalidMigrations, match="baseline 7"):
        migrator(ground).migrate(baseline=7)
    assert migrator(ground).plan(baseline=1)["a"].left == ("0002_fill",)
    assert migrator(ground).migrate(baseline=1)["a"].ran == ("0002_fill",)
    assert migrator(ground).migrate(baseline=0)["a"].ran == (), "where a ledger is, it says nothing"
    assert ground.ledger() == [(1, "applied"), (2, "applied")]


def test_a_ledger_of_another_shape_is_never_an_empty_one(ground: Ground) -> None:
    ground.rows("CREATE TABLE schema_ledger (version TEXT)")
    ground.write(ONE)

    for report in (migrator(ground).migrate(), migrator(ground).status(), migrator(ground).down(0)):
        assert isinstance(report["a"].error, LedgerUnreadable) and not report.ok
    assert not ground.has("messages")


def test_a_step_cannot_end_the_transaction_it_runs_in(ground: Ground) -> None:
    ground.write(ONE)
    ground.write(
        {"0002_commit.py": "def up(c):\n    c.execute('CREATE TABLE half (id INTEGER)')\n    c.commit()"}
    )

    assert isinstance(migrator(ground).migrate()["a"].error, MigrationFailed)
    assert not ground.has("half") and ground.ledger() == [(1, "applied")]
