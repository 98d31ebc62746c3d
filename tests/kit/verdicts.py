"""`--verdicts FILE`: what became of each test, a line each, written as soon as it is known. `tools/gate.py` reads it.

A run that is stopped from outside, or that breaks at its end, has told by then all that it knew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

import pytest

WHY_MAX = 300  # characters of a failure's reason


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--verdicts", type=Path, help="write what became of each test to this file")


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("--verdicts")
    if path is not None and not hasattr(
        config, "workerinput"
    ):  # the process that reports, not those that play
        config.pluginmanager.register(Verdicts(path), "verdicts")


class Verdicts:
    """How many tests are to be played, and what is said of each: of its set-up, its call and its tear-down."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._is_planned = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        self._plan(len(ids))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:  # where several processes play, it is they who collect
            self._plan(len(session.items))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._note(report, report.outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note(report, "uncollected")

    def pytest_unconfigure(self) -> None:
        self._file.close()

    def _plan(self, count: int) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._write({"planned": count})

    def _note(self, report: pytest.TestReport | pytest.CollectReport, outcome: str) -> None:
        why = _reason(report) if report.failed else ""
        self._write({"test": report.nodeid, "outcome": outcome, "why": why})

    def _write(self, told: dict[str, object]) -> None:
        self._file.write(json.dumps(told) + "\n")
        self._file.flush()


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr).strip()[:WHY_MAX]
