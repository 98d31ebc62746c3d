"""`fencerow backfills`: list, pause and resume, on both databases."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path

import pytest

from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing import drain
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.cli.test_bars import on_a_terminal

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

DECLARED = """
from fencerow import App
from fencerow.migrations import Backfill

app = App()

def fill(connection, first, last): ...

marks = Backfill(app, "marks", fill, table="TABLE", key="name")
"""


@pytest.fixture
def shop(engine: SqliteEngine | PostgresEngine, tmp_path: Path) -> str:
    """A backfill of a table that every database has."""
    table = "fencerow_schema_migrations" if engine.dialect == "sqlite" else "fencerow.schema_migrations"
    (tmp_path / "shop_fills.py").write_text(DECLARED.replace("TABLE", table))
    return "shop_fills:app"


def test_a_backfill_is_listed_paused_and_resumed(cli: Cli, url: str, shop: str) -> None:
    assert cli("backfills", "--json").json == []
    assert cli("backfills", "resume", "marks", "-A", shop).error == "FR-762"
    assert cli("backfills", "pause", "marks").error == "FR-762"

    declared = importlib.import_module("shop_fills")
    declared.marks.start()
    (listed,) = cli("backfills", "--json").json
    assert (listed["name"], listed["state"], listed["percent"], listed["failed"]) == (
        "marks",
        "running",
        0.0,
        [],
    )
    assert cli("backfills", "pause", "marks").out == "marks is paused\n"
    assert cli("backfills", "pause", "marks").out == "marks was not running\n"
    assert "paused" in cli("backfills").out
    assert cli("backfills", "resume", "marks", "-A", shop).out == "marks goes on\n"
    assert cli("jobs", "list", "--json").json
    declared.app.close()


def test_a_wait_ends_with_the_backfill(
    cli: Cli, url: str, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("backfills", "wait", "marks").error == "FR-762"
    monkeypatch.syspath_prepend(tmp_path)
    declared = importlib.import_module("shop_fills")
    rows = declared.marks.start().rows_planned
    late = cli("backfills", "wait", "marks", "--wait-max", "0.01", "--json")
    assert (late.code, late.json["state"]) == (6, "running")
    cli("backfills", "pause", "marks")
    assert cli("backfills", "wait", "marks").code == 1
    cli("backfills", "resume", "marks", "-A", shop)

    worker = threading.Thread(target=drain, args=(declared.app,))
    worker.start()
    shown = on_a_terminal(monkeypatch)
    done = cli("backfills", "wait", "marks")
    worker.join()

    assert done.code == 0 and "done" in done.out
    assert f"{rows}/{rows}" in shown.getvalue()
    declared.app.close()
