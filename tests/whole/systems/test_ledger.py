"""The count at the end of the run is honest: every scenario is played by a test or listed as waiting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.whole.systems.ledger import SCENARIOS, WAITS_FOR
from tests.whole.systems.tally import told

PLAYED = re.compile(r'^@pytest\.mark\.scenario\("([A-D]\.\d+)"\)$', re.MULTILINE)


def test_each_scenario_is_played_or_waits_and_none_does_both() -> None:
    every = [scenario for some in SCENARIOS.values() for scenario in some]

    assert sorted({*_played(), *WAITS_FOR}) == sorted(every)
    assert set(_played()) & set(WAITS_FOR) == set()
    assert len(every) == 66


def test_a_scenario_counts_when_it_passed_everywhere() -> None:
    assert told({"A.3": True, "C.5": True}) == (
        "systems: passed 2 of 66 scenarios "
        "(flydocs 1 of 16, dealbot 0 of 16, tzurot 1 of 18, chatbotx 0 of 16)"
    )
    assert told({"A.3": False, "C.5": True}).startswith("systems: passed 1 of 66")
    assert told({"A.3": False}).endswith("; failed: A.3")


def _played() -> Iterator[str]:
    for file in Path(__file__).parent.glob("test_*.py"):
        yield from PLAYED.findall(file.read_text("utf-8"))
