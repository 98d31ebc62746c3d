"""Counts the scenarios that passed, on every engine they ran on, and says so at the end of the run.

A plugin and no part of a conftest: with several test processes the line is printed by one that collects nothing.
"""

from __future__ import annotations

import pytest

from tests.whole.systems.ledger import SCENARIOS

PROPERTY = "scenario"


@pytest.fixture(autouse=True)
def _scenario(request: pytest.FixtureRequest, record_property: object) -> None:
    """Note in the test's report which scenario it plays."""
    marker = request.node.get_closest_marker(PROPERTY)
    if marker is not None:
        request.node.user_properties.append((PROPERTY, marker.args[0]))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "scenario(name): plays this scenario of the four systems, such as A.3")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The one line, if any scenario was played."""
    played: dict[str, bool] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == PROPERTY:
                    played[str(value)] = played.get(str(value), True) and report.outcome == "passed"
    if played:
        terminalreporter.write_line(told(played))


def told(played: dict[str, bool]) -> str:
    """How many of all scenarios passed, per system, and which of those played did not."""
    passed = {scenario for scenario, good in played.items() if good}
    parts = [f"{system} {len(passed & set(all_))} of {len(all_)}" for system, all_ in SCENARIOS.items()]
    total = sum(len(all_) for all_ in SCENARIOS.values())
    line = f"systems: passed {len(passed)} of {total} scenarios ({', '.join(parts)})"
    failed = sorted(scenario for scenario, good in played.items() if not good)
    return f"{line}; failed: {', '.join(failed)}" if failed else line
