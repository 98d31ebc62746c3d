"""The guide has every metric, as the code has it: a name that is promised cannot change by accident."""

from __future__ import annotations

from tools.metrics import GUIDE, written


def test_the_table_of_the_guide_is_that_of_the_code() -> None:
    page = GUIDE.read_text("utf-8")

    assert written(page) == page, "run python3 -m tools.metrics, and say in CHANGELOG.md what changed"
