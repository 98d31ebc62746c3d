"""The page of the guide runs as it stands, from top to bottom."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.house.tree import ROOT

PAGE = ROOT / "docs" / "guide" / "transitions.md"


def test_the_guide_runs_and_says_what_it_shows(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    program = "\n".join(re.findall(r"^```python\n(.+?)^```", text, re.MULTILINE | re.DOTALL))
    shown = re.findall(r"^```text\n(.+?)^```", text, re.MULTILINE | re.DOTALL)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(shown)
