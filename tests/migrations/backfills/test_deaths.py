"""A worker is killed in the middle of a range: the next one goes on, and each range was done once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencerow import App
from tests.migrations.backfills.conftest import Table
from tests.migrations.backfills.test_backfill import backfill

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("where", ["write:3"])
async def test_a_killed_worker_leaves_whole_ranges(
    app: App, table: Table, tmp_path: Path, where: str
) -> None:
    table.fill(*range(1, 81))
    fill = backfill(app)
    fill.start()
    settings = {"FENCEROW_URL": table.url, "DIE": where, "DIED": str(tmp_path / "died")}

    first = member(settings)
    assert first.returncode == -signal.SIGKILL, first.stderr
    done = int(where.partition(":")[2]) - 1
    assert fill.status().ranges_done == done == len(table.rows("SELECT * FROM ranges"))
    assert sum(table.met().values()) == 10 * done
    # The job of one that was killed runs in a child process, which finds the backfill among the module's globals.
    second = member(settings)

    assert second.returncode == 0, second.stderr
    status = fill.status()
    assert (status.state, status.rows_done, status.ranges_done) == ("done", 80, 8)
    assert set(table.met().values()) == {1} and len(table.rows("SELECT * FROM ranges")) == 8


def member(settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.migrations.backfills.member"],
        env={**os.environ, **settings, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
