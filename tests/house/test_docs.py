"""What our pages show happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT


@pytest.mark.prove
def test_the_views_are_what_the_commands_show() -> None:
    words = [sys.executable, "-m", "tools.views"]
    letters = {**os.environ, "PYTHONUTF8": "1"}  # whatever this machine's locale has
    shown = subprocess.run(
        words, cwd=ROOT, env=letters, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert shown.returncode == 0, shown.stderr
    page = (ROOT / "docs" / "views.md").read_text("utf-8")
    assert page == shown.stdout, "run: .venv/bin/python -m tools.views > docs/views.md"


def test_the_first_code_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    block = re.search(
        r"^```python\n(.+?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert block, "the README shows no code"
    (tmp_path / "hello.py").write_text(block[1], "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}

    done = subprocess.run(
        [sys.executable, "hello.py"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for word in re.findall(r'print\("([\w ]+):"', block[1]):
        assert f"{word}:" in done.stdout
