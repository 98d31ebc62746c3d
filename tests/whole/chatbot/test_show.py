"""The whole show, with real processes and kill -9, on files and on PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.house.tree import ROOT
from tests.kit.loops import module_path
from tests.kit.pace import PATIENCE_S

RECIPIENTS = 100


@pytest.mark.prove  # each of its steps is played by the tests beside this one
@pytest.mark.parametrize("databases", ["sqlite", "postgres"], indirect=True)
def test_it_ends_with_everybody_sent_to_once(databases: tuple[str, list[str]]) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}
    url, shards = databases
    arguments = ["--recipients", str(RECIPIENTS), "--url", url, "--shards", *shards]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.chatbot", *arguments],
        cwd=ROOT,
        env=ours | {"PYTHONPATH": module_path(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    said = done.stdout
    assert "a second run finds nothing to do" in said
    assert "provider calls: 4; for the same files again: 0" in said
    assert "version 4: replaced; then version 3: outdated" in said
    assert "24 events brought, 4 of them new, 4 answers sent" in said
    assert f"{RECIPIENTS - 2} deliveries to {RECIPIENTS - 2} addresses" in said
