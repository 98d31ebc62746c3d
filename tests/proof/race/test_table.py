"""docs/races.md says what was played, and what was played is what the tests play now."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.proof.race.named import RACES, WHOLE
from tests.proof.race.table import DOCS, PAGE, page

AGAIN = "run `python3 dev.py race --long --evidence FILE` and `python -m tests.proof.race.table FILE`"


@pytest.fixture(scope="module")
def file() -> Path:
    return max(DOCS.glob("evidence/races-*.json"))


@pytest.fixture(scope="module")
def facts(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text())["explored"]
    return found


def test_the_page_is_made_from_the_evidence(file: Path) -> None:
    assert PAGE.read_text() == page(json.loads(file.read_text()), f"evidence/{file.name}"), AGAIN


def test_the_evidence_is_of_the_tests_that_there_are(facts: list[dict[str, Any]]) -> None:
    then = {(number, fact["test"]) for fact in facts for number in fact.get("named", ())}

    assert then == set(marked()), AGAIN


@pytest.mark.parametrize("number", RACES)
def test_each_race_has_been_played_and_has_a_control(facts: list[dict[str, Any]], number: int) -> None:
    mine = [fact for fact in facts if number in fact.get("named", ())]

    assert {fact["kind"] for fact in mine} == {"race", "control"}


@pytest.mark.parametrize("number", WHOLE)
def test_what_must_be_played_whole_was(facts: list[dict[str, Any]], number: int) -> None:
    mine = [fact for fact in facts if number in fact.get("named", ()) and fact["kind"] == "race"]

    assert {fact["mode"] for fact in mine} >= {"plain", "held"}
    assert [fact["scenario"] for fact in mine if fact["played"] != fact["total"]] == []


def marked() -> list[tuple[int, str]]:
    """Every test of these folders that plays a race, by its number."""
    names = [f"tests.proof.race.{path.stem}" for path in sorted(Path(__file__).parent.glob("test_*.py"))]
    return [
        (number, name)
        for module in map(importlib.import_module, names)
        for name, test in vars(module).items()
        for mark in getattr(test, "pytestmark", ())
        if mark.name == "named"
        for number in mark.args
    ]
