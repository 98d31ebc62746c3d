"""`fencerow shards`: plan, migrate, status and down over several databases, with an exit code that tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.cli.test_bars import on_a_terminal

_clean, cli = command_line._clean, command_line.cli  # fixtures

DECLARED = """
from pathlib import Path
from fencerow.migrations import Migrator

here = Path(__file__).parent
migrator = Migrator(
    {"eu": f"sqlite:///{here}/eu.db", "us": f"sqlite:///{here}/us.db"}, here / "migrations", connect_timeout_s=1
)
broken = 1
"""


@pytest.fixture
def shop(tmp_path: Path) -> str:
    (tmp_path / "shop_shards.py").write_text(DECLARED)
    migrations = tmp_path / "migrations"
    migrations.mkdir()
    (migrations / "0001_one.sql").write_text("CREATE TABLE one (id INTEGER)")
    (migrations / "0001_one.down.sql").write_text("DROP TABLE one")
    (migrations / "0002_two.sql").write_text("CREATE TABLE two (id INTEGER)")
    (migrations / "0002_two.down.sql").write_text("DROP TABLE two")
    return "shop_shards"


def test_plan_migrate_status_and_down(cli: Cli, shop: str, tmp_path: Path) -> None:
    planned = cli("shards", "plan", "-A", shop, "--json")
    assert planned.code == 0 and planned.json["shards"][0]["left"] == ["0001_one", "0002_two"]
    assert not (tmp_path / "eu.db").exists()

    done = cli("shards", "migrate", "-A", shop)
    assert done.code == 0 and done.out.count("0001_one, 0002_two") == 2
    assert [shard["at"] for shard in cli("shards", "status", "-A", shop, "--json").json["shards"]] == [2, 2]

    back = cli("shards", "down", "-A", shop, "--to", "1", "--shard", "eu", "--json")
    assert back.code == 0 and [shard["ran"] for shard in back.json["shards"]] == [["0002_two"]]
    assert cli("shards", "migrate", "-A", shop, "--to", "1", "--json").json["ok"]


def test_a_shard_that_fails_is_named_and_the_exit_code_tells(cli: Cli, shop: str, tmp_path: Path) -> None:
    (tmp_path / "us.db").mkdir()

    done = cli("shards", "migrate", "-A", shop)

    assert done.code == 1 and done.error == "FR-757" and "us" in done.err
    (tmp_path / "us.db").rmdir()
    again = cli("shards", "migrate", "-A", shop, "--json")
    assert again.code == 0
    assert [shard["ran"] for shard in again.json["shards"]] == [[], ["0001_one", "0002_two"]]


@pytest.mark.parametrize(
    ("words", "error", "told"),
    [
        ((), "FR-101", "-A module:migrator"),
        (("-A", "shop_shards:nothing"), "FR-101", "shop_shards:migrator"),
        (("-A", "shop_shards:broken"), "FR-101", "not Migrator"),
        (("-A", "shop_shards", "--shard", "asia"), "FR-760", "eu, us"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    cli: Cli, shop: str, words: tuple[str, ...], error: str, told: str
) -> None:
    done = cli("shards", "migrate", *words)
    assert (done.code, done.error) == (2, error) and told in done.err


def test_two_steps_with_one_number_are_refused_before_anything_runs(
    cli: Cli, shop: str, tmp_path: Path
) -> None:
    (tmp_path / "migrations" / "2_again.sql").write_text("SELECT 1")
    done = cli("shards", "migrate", "-A", shop)
    assert (done.code, done.error) == (2, "FR-751")
    assert not (tmp_path / "eu.db").exists()


def test_a_bar_counts_the_migrations_of_all_shards(
    cli: Cli, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = on_a_terminal(monkeypatch)

    done = cli("shards", "migrate", "-A", shop, "--to", "1")

    assert done.code == 0
    assert "2/2" in shown.getvalue() and "0001_one" in shown.getvalue()
    before = shown.getvalue()
    assert cli("shards", "migrate", "-A", shop, "--json").json["ok"]
    assert shown.getvalue() == before, "no bar beside --json"
