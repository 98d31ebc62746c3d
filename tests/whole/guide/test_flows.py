"""docs/guide/flows.md does what it says: its blocks one after the other, in one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencerow import App
from tests.house.tree import ROOT

PAGE = (ROOT / "docs" / "guide" / "flows.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = App(f"sqlite:///{tmp_path}/app.db")
    program = "\n".join(BLOCKS)
    exec(compile(program, "flows.md", "exec"), {"app": app, "__name__": "guide"})  # noqa: S102
    said = re.findall(r"print\(.+\)  # (.+)", program)
    assert capsys.readouterr().out.splitlines() == said
    assert len(said) == 3
