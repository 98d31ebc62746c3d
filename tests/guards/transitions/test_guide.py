"""The page of the guide runs as it stands, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house.tree import ROOT
from tests.kit.program import printed

PAGE = ROOT / "docs" / "guide" / "transitions.md"


def test_the_guide_runs_and_says_what_it_shows(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    program = "\n".join(re.findall(r"^```python\n(.+?)^```", text, re.MULTILINE | re.DOTALL))
    shown = re.findall(r"^```text\n(.+?)^```", text, re.MULTILINE | re.DOTALL)

    assert printed(program, tmp_path) == "".join(shown)
