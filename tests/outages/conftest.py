"""What every outage needs: a place for its numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keep a line of numbers with the test's report; `-s` shows it."""

    def say(line: str) -> None:
        record_property("outage", line)
        print(f"\n{line}")

    return say
