"""The example behind its gateway, on a file and on PostgreSQL: early, late, missing, refused and told, with kill -9."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.house.tree import ROOT
from tests.kit.loops import module_path
from tests.kit.pace import PATIENCE_S


@pytest.mark.prove
def test_fields_come_early_and_what_is_missing_is_said(url: str) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.documents", "--url", url],
        cwd=ROOT,
        env=ours | {"PYTHONPATH": module_path(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    said = [line.strip() for line in done.stdout.splitlines()]
    assert "3 documents posted, one of them twice: it is the same one" in said
    assert "what is no PDF is refused: 422 FR-203 at $.jobs[0].args.content" in said
    assert "annual_report.pdf: 59 fields, while the places are still to come" in said
    assert [line for line in said if " places on " in line] == [
        "annual_report.pdf: 54 places on 11 pages; page 2 is missing: unreadable: page 2 is torn",
        "contract.pdf: 20 places on 2 pages",
        "receipt.pdf: 8 places on 1 page",
    ]
    assert said[-1] == "8 webhooks verified: of each document both stages, and two cancels"
