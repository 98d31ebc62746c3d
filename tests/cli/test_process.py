"""The command in processes as service managers, containers and old terminals have them."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from fencerow.cli.process import TERMINATED, prepare_process
from fencerow.command.output import say

APP = "from fencerow import App\napp = App()\n@app.job\ndef idle() -> None: ...\n"
FIRST = """
import os, signal
from fencerow.cli import process
process.FIRST = os.getpid()
process.prepare_process()
os.kill(os.getpid(), signal.SIGTERM)
print("came here")
"""


def test_a_worker_runs_where_the_standard_error_is_closed(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    worker = f"exec {sys.executable} -m fencerow worker -A shop:app --url sqlite:///jobs.db --once 2>&- 0<&-"

    ran = subprocess.run(["/bin/sh", "-c", worker], cwd=tmp_path, capture_output=True, text=True)

    assert (ran.returncode, ran.stdout) == (0, "")


def test_letters_that_a_terminal_does_not_know_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(kept, encoding="ascii"))

    prepare_process()

    say("a \N{GRINNING FACE}")
    sys.stdout.flush()
    assert kept.getvalue() == b"a \\U0001f600\n"


def test_the_first_process_of_a_container_ends_by_sigterm_before_it_serves() -> None:
    ran = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True)

    assert (ran.returncode, ran.stdout) == (TERMINATED, "")
