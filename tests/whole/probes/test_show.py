"""The whole show on a file and on PostgreSQL, with real HTTP, processes and kill -9."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.house.tree import ROOT
from tests.kit.loops import module_path
from tests.kit.pace import PATIENCE_S


@pytest.mark.prove
def test_it_ends_with_one_at_a_time_at_each_provider(url: str) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.probes", "--url", url],
        cwd=ROOT,
        env=ours | {"PYTHONPATH": module_path(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    said = done.stdout
    assert "48 probes; at one provider at once: 1" in said
    assert "3 probes at the dripping one were ended by the limit of their time, once each" in said
    assert "never two at once" in said
    assert "count_providers 1," in said
    assert "no row vanishes" in said
    assert "what is for all makes none for a fire in it" in said
    assert "the known example: load 32, 28 minutes are left to catch up" in said
