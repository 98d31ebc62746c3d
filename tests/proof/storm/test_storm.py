"""The short form of the storm: faults of every kind at once, more than a thousand jobs, and every promise checked.

The long form is `python3 dev.py storm`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proof.storm.bugs import BUGS, PAYLOADS_THERE, TURNS_KEPT, found_wrong
from tests.proof.storm.evidence import complaints, line
from tests.proof.storm.plan import CONTROL_SEEDS, control, planned
from tests.proof.storm.storm import weather

pytestmark = pytest.mark.prove

ENGINES = ("postgres", "sqlite")
JOBS, FAULTS, SEED = 1_200, 120, 20_26  # each kind of fault comes, on both engines
PAYLOADS_LEAST = 20  # arguments and results outside, likewise
TURNS_LEAST = 100  # attempts under keys and limits, of which the checker must have looked at so many


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keep a line of numbers with the test's report; `-s` shows it."""

    def say(text: str) -> None:
        record_property("storm", text)
        sys.stdout.write(f"\n{text}\n")

    return say


@pytest.mark.parametrize("kind", ENGINES)
def test_a_storm_loses_nothing_and_does_nothing_twice(
    kind: str, tmp_path: Path, report: Callable[[str], None]
) -> None:
    plan = planned(kind, JOBS, FAULTS, SEED)

    found = weather(kind, plan, tmp_path)

    wrong = complaints(found)
    report("\n".join([line(found), *wrong]))
    assert not wrong, "the complaints are above, one a line"
    assert found.jobs >= plan.jobs
    assert found.books.checked[TURNS_KEPT] >= TURNS_LEAST, "hardly any job with a key or a limit ran"
    assert found.books.checked[PAYLOADS_THERE] >= PAYLOADS_LEAST, "hardly any payload lay outside"
    # Each of these left jobs behind, so it was measured how long they stayed away; but not around the hour off.
    kills = found.tally.confirmed["worker killed"]
    assert 2 * len(found.recoveries) >= kills > 5, "recovery was hardly ever measured"


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("kind", ENGINES)
def test_a_storm_finds_workers_that_lack_a_guard(kind: str, bug: str, tmp_path: Path) -> None:
    """The negative controls: who slept through its lease finishes what is not its own any more, and so on."""
    wrong: list[str] = []
    for seed in range(SEED, SEED + CONTROL_SEEDS):  # whether a sleeper still has something to write is chance
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = weather(kind, control(kind, seed, bug), folder)
        assert found.confirmed >= 3
        wrong = found_wrong(found.books.wrong, bug)
        if wrong:
            break
    assert wrong
