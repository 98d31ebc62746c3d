"""The first example of these pages prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.kit.program import printed

FIRST = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["events", "migrations", "mutex"])
def test_it_runs_and_prints_what_stands_there(page: str, tmp_path: Path) -> None:
    found = FIRST.search((ROOT / "docs" / "guide" / f"{page}.md").read_text("utf-8"))

    assert found, "no example with what it prints"
    assert printed(found[1], tmp_path) == found[2]
