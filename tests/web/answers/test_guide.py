"""docs/guide/answers.md does what it says: its block runs, and prints what stands behind it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencerow import App
from tests.house.tree import ROOT
from tests.kit.pace import slower

PAGE = (ROOT / "docs" / "guide" / "answers.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bound = "within_s=2.5"  # one that must pass, and within which a slow machine stores a job
    assert bound in PAGE
    program = "\n".join(BLOCKS).replace(bound, f"within_s={slower(2.5)}")
    exec(compile(program, "answers.md", "exec"), {"app": App(f"sqlite:///{tmp_path}/app.db")})  # noqa: S102
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.+\)  # (.+)", program)
