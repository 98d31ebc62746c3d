"""The page on once, windows and replaced rows shows what happens."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house.tree import ROOT
from tests.kit.program import printed

PAGE = ROOT / "docs" / "guide" / "once.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_its_first_example_says_what_stands_there(tmp_path: Path) -> None:
    (_, program), (_, says), *_ = BLOCK.findall(PAGE.read_text("utf-8"))

    assert printed(program, tmp_path) == says
