"""Part D of the four systems: the message shards of ChatbotX, migrated side by side."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fencerow.errors import LedgerMissing, LedgerUnreadable, MigrationFailed, MigrationLate
from fencerow.migrations import Migrator, Outcome, Report
from tests.migrations.conftest import Ground

STEPS = {
    "0001_messages.sql": "CREATE TABLE messages (id INTEGER PRIMARY KEY, workspace TEXT, body TEXT);",
    "0001_messages.down.sql": "DROP TABLE messages;",
    "0002_sender.sql": "ALTER TABLE messages ADD COLUMN sender TEXT;",
    "0002_sender.down.sql": "ALTER TABLE messages DROP COLUMN sender;",
    "0003_by_workspace.sql": "CREATE INDEX messages_workspace ON messages (workspace);",
    "0004_first.py": "def up(c):\n    c.execute(\"INSERT INTO messages (id, body) VALUES (1, 'welcome')\")\n",
    "0005_archive.sql": "CREATE TABLE archive (id INTEGER); INSERT INTO archive SELECT id FROM messages;",
}


def shards(ground: Ground, *names: str, **options: Any) -> Migrator:
    return Migrator({name: ground.urls[name] for name in names or "abcd"}, ground.folder, **options)


@pytest.mark.scenario("D.1")
def test_two_migrators_on_one_shard_run_each_step_once(ground: Ground) -> None:
    ground.write(STEPS)
    reports: list[Report] = []
    gate = threading.Barrier(2)

    def migrate() -> None:
        one = shards(ground, "a")
        gate.wait(30)
        reports.append(one.migrate())

    both = [threading.Thread(target=migrate) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(60)

    assert [report["a"].outcome for report in reports] == [Outcome.DONE, Outcome.DONE]
    ran = Counter(migration for report in reports for migration in report["a"].ran)
    assert len(ran) == 5 and set(ran.values()) == {1}
    assert (
        ground.rows("SELECT count(*) FROM messages") == ground.rows("SELECT count(*) FROM archive") == [(1,)]
    )
    assert [report["a"].left for report in reports] == [(), ()]


@pytest.mark.scenario("D.2")
def test_a_version_that_cannot_be_read_is_an_error_and_never_zero(ground: Ground) -> None:
    ground.write(STEPS)
    assert shards(ground, "a", "b").migrate().ok
    if ground.dialect == "postgres":
        ground.rows("REVOKE ALL ON schema_ledger FROM CURRENT_USER")
    else:
        path = Path(ground.urls["a"].removeprefix("sqlite:///"))
        path.write_bytes(b"this was a database" + path.read_bytes()[19:])
    ground.rows("DELETE FROM schema_ledger WHERE version = 2", "b")  # a row of the version table is gone
    ground.rows("CREATE TABLE messages (id INTEGER)", "c")  # all of it was never there

    report = shards(ground).migrate()

    assert isinstance(report["a"].error, LedgerUnreadable)
    assert isinstance(report["b"].error, MigrationLate) and "0002_sender" in report["b"].error.what
    assert isinstance(report["c"].error, LedgerMissing)
    assert report["d"].outcome is Outcome.DONE and report["d"].at == 5, "an empty database is made"
    assert [len(shard.ran) for shard in report.shards] == [0, 0, 0, 5]
    assert not report.ok


@pytest.mark.scenario("D.3")
def test_an_unreachable_shard_is_named_and_done_later_alone(ground: Ground) -> None:
    ground.write(STEPS)
    well = ground.urls["c"]
    away = "postgresql://app@127.0.0.1:1/away" if ground.dialect == "postgres" else f"{well}.away/c.db"
    ground.urls["c"] = away

    report = shards(ground, connect_timeout_s=2.0).migrate()

    assert [shard.shard for shard in report.failed] == ["c"] and not report.ok
    assert report["c"].outcome is Outcome.UNREACHABLE and report["c"].error is not None
    assert "shard c" in report["c"].error.what
    assert [len(report[name].ran) for name in "abd"] == [5, 5, 5]
    ground.urls["c"] = well
    again = shards(ground).migrate()
    assert again.ok and [len(again[name].ran) for name in "abcd"] == [0, 0, 5, 0]


@pytest.mark.scenario("D.4")
def test_a_failing_step_stops_its_shard_alone_and_can_be_taken_back(ground: Ground) -> None:
    ground.write(STEPS)
    ground.rows(
        "CREATE TABLE messages_workspace (id INTEGER)", "b"
    )  # migration 3 meets something of that name

    refused = shards(ground, "b").migrate()
    assert isinstance(refused["b"].error, LedgerMissing)
    report = shards(ground).migrate(baseline=0)

    assert [shard.at for shard in report.shards] == [5, 2, 5, 5]
    assert [shard.shard for shard in report.failed] == ["b"]
    failed = report["b"]
    assert isinstance(failed.error, MigrationFailed) and "0003_by_workspace.sql" in failed.error.what
    assert failed.ran == ("0001_messages", "0002_sender")
    back = shards(ground).down(1, shards=["b"])
    assert back.ok and back["b"].ran == ("0002_sender",) and back["b"].at == 1


@pytest.mark.scenario("D.4")
def test_shards_run_in_parallel(ground: Ground) -> None:
    """The migration of each waits inside for that of the other."""
    here = (
        "import tests.whole.systems.test_chatbotx_shards as shared\ndef up(c):\n    shared.MEETING.wait(20)\n"
    )
    ground.write({"0001_meet.py": here})

    assert shards(ground, "a", "b", parallel=2).migrate().ok


MEETING = threading.Barrier(2)


@pytest.mark.scenario("D.4")
def test_one_shard_is_never_migrated_twice_at_a_time(ground: Ground, tmp_path: Path) -> None:
    """Whoever runs a migration makes a file that must not be there, and removes it."""
    inside = (
        "import os\n"
        "def up(c):\n"
        f"    os.close(os.open({str(tmp_path / 'inside')!r}, os.O_CREAT | os.O_EXCL))\n"
        "    c.execute('CREATE TABLE step_{0} (id INTEGER)')\n"
        f"    os.unlink({str(tmp_path / 'inside')!r})\n"
    )
    ground.write({f"{number}_step.py": inside.format(number) for number in range(1, 9)})
    reports: list[Report] = []
    runners = [
        threading.Thread(target=lambda: reports.append(shards(ground, "a").migrate())) for _ in range(4)
    ]
    for each in runners:
        each.start()
    for each in runners:
        each.join(60)

    assert all(report.ok for report in reports), [report["a"].error for report in reports]
    assert sum(len(report["a"].ran) for report in reports) == 8


@pytest.mark.scenario("D.5")
def test_versions_are_numbers(ground: Ground) -> None:
    """As text 10 would come before 9, and 9 would be the newest of all."""
    ground.write(
        {"9_nine.sql": "CREATE TABLE nine (id INTEGER)", "10_ten.sql": "ALTER TABLE nine ADD ten INTEGER"}
    )
    assert shards(ground, "a").migrate()["a"].ran == ("0009_nine", "0010_ten")

    ground.write({"11_eleven.sql": "ALTER TABLE nine ADD eleven INTEGER"})
    report = shards(ground, "a").migrate()["a"]
    assert report.ran == ("0011_eleven",) and report.at == 11
