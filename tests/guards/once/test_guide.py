"""The page on once, windows and replaced rows shows what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.house.tree import ROOT

PAGE = ROOT / "docs" / "guide" / "once.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_its_first_example_says_what_stands_there(tmp_path: Path) -> None:
    (_, program), (_, says), *_ = BLOCK.findall(PAGE.read_text("utf-8"))

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == says
