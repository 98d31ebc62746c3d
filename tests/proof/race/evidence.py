"""The table at the end of a run, and the same as JSON lines: what was explored, and which controls turned red."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.proof.storm.evidence import surroundings

CI_ORDERS = 3
KINDS = ("race", "control", "crash")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fencerow")
    group.addoption("--orders", type=int, default=CI_ORDERS, help="play at most so many orders of one race")
    group.addoption("--long", action="store_true", help="only the races of docs/races.md")
    group.addoption("--evidence", type=Path, default=None, help="write what was explored to this file")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        others = [item for item in items if item.get_closest_marker("named") is None]
        items[:] = [item for item in items if item.get_closest_marker("named") is not None]
        config.hook.pytest_deselected(items=others)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    facts = [
        {"kind": name, **json.loads(value)}
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name in KINDS and getattr(report, "when", "") == "call"
    ]
    if not facts:
        return
    terminalreporter.section("what was explored")
    for line in table(facts):
        terminalreporter.write_line(line)
    path = config.getoption("--evidence", None)
    if path is not None:
        bad = len(terminalreporter.stats.get("failed", [])) + len(terminalreporter.stats.get("error", []))
        told = {
            **surroundings(["postgres", "sqlite"]),
            "command": ["pytest", *(_without_folder(each) for each in config.invocation_params.args)],
            "passed": not bad,
            "explored": facts,
        }
        path.write_text(json.dumps(told, indent=1) + "\n")


def _without_folder(argument: str) -> str:
    """Where somebody keeps the evidence is of no interest in it."""
    return argument.rpartition("/")[2] if argument.startswith("/") else argument


def table(facts: list[dict[str, Any]]) -> list[str]:
    """One line per scenario: orders by mode, and how many controls turned red."""
    lines = []
    for scenario in sorted({fact["scenario"] for fact in facts}):
        mine = [fact for fact in facts if fact["scenario"] == scenario]
        cells = [_cell([fact for fact in mine if fact["kind"] != "control"], mode) for mode in _modes(mine)]
        red = sum(1 for fact in mine if fact["kind"] == "control")
        lines.append(f"{scenario:58} {'  '.join(cells):58} {f'{red} red' if red else ''}".rstrip())
    played = sum(fact["played"] for fact in facts if fact["kind"] != "control")
    red = sum(1 for fact in facts if fact["kind"] == "control")
    return [*lines, f"{played} orders and crash points, none wrong; {red} controls, all red"]


def _modes(facts: list[dict[str, Any]]) -> list[str]:
    return sorted({fact["mode"] for fact in facts if fact["kind"] != "control"})


def _cell(facts: list[dict[str, Any]], mode: str) -> str:
    mine = [fact for fact in facts if fact["mode"] == mode]
    played, total = (sum(fact[key] for fact in mine) for key in ("played", "total"))
    of = "" if played == total else f" of ≈ {total:,}"
    of += " (reduced)" if any(fact.get("reduced") for fact in mine) else ""
    return f"{mode} {played}{of} ({sum(fact['seconds'] for fact in mine):.1f} s)"
