"""The example of two stages on a file and on PostgreSQL: what is there early, what comes late, and what is missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S


@pytest.mark.prove
def test_fields_come_early_and_what_is_missing_is_said(url: str) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.documents"],
        cwd=ROOT,
        env=ours | {"PYTHONPATH": str(ROOT / "src"), "FENCEROW_URL": url},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    early, late = done.stdout.splitlines()[:3], done.stdout.splitlines()[3:]
    assert early[0] == "annual_report.pdf: 59 fields, while the places are still to come"
    assert late == [
        "annual_report.pdf: 54 places on 11 pages; page 2 is missing: unreadable: page 2 is torn",
        "contract.pdf: 20 places on 2 pages",
        "receipt.pdf: 8 places on 1 page",
    ]
