"""A process that is short of descriptors or threads from the start says so, with what to do."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from fencerow import App
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import OutOfResources, Unavailable
from tests.kit.pace import PATIENCE_S
from tests.kit.shortage import no_descriptors, no_thread

FEW = 8  # enough for the interpreter, too few for an event loop and a database
SHORT = """
from fencerow import App
app = App("sqlite:///short.db")

@app.job
async def work() -> None: ...
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are set as on Linux")


def test_a_worker_that_finds_no_descriptors_at_its_start_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text(SHORT)
    arguments = [sys.executable, "-m", "fencerow.cli.main", "worker", "-A", "short:app"]
    ended = subprocess.run(
        arguments,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW)),
    )

    assert ended.returncode == 1
    found, expected, to_do = ended.stderr.splitlines()[-3:]
    assert found.startswith("FR-604: ") and "Too many open files" in found
    assert "no file descriptors" in expected
    assert "ulimit -n" in to_do


async def test_a_worker_that_gets_no_thread_at_its_start_says_what_to_do(url: str) -> None:
    async with App(url) as app:
        app.job(name="work")(lambda: None)
        worker = app.worker()
        with no_thread("fencerow-keeper"), pytest.raises(OutOfResources, match="ulimit"):
            await worker.start()


def test_a_file_that_cannot_be_opened_for_want_of_a_descriptor_is_not_blamed(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "jobs.db", store.sqlite_queries(), busy_timeout_s=1.0)
    raised: list[Unavailable] = []
    with no_descriptors():
        try:
            engine.run(store.list_workers())
        except Unavailable as error:
            raised.append(error)

    assert "no file descriptors left" in str(raised[0])
