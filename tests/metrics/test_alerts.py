"""The alert rules and the dashboard: valid, over metrics that exist, and each alert explained."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fencerow.metrics.names import METRICS, MetricKind
from tests.house.tree import ROOT

DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "fencerow.rules.yml"
TESTS = Path(__file__).parent / "rules_test.yml"
NAME = re.compile(r"\bfencerow_[a-z_]+")


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def expressions() -> list[str]:
    """Those of the dashboard, with what Grafana puts in."""
    dashboard = json.loads((DEPLOY / "grafana" / "fencerow.json").read_text("utf-8"))
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return [each.replace("$__rate_interval", "5m").replace("$queue", ".*") for each in found]


def checked(*words: str | Path) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.outside("Prometheus")
def test_the_files_are_valid_and_the_rules_raise_the_alarm_when_they_should() -> None:
    checked("promtool", "check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    checked("promtool", "check", "rules", RULES)
    checked("amtool", "check-config", DEPLOY / "prometheus" / "alertmanager.yml")
    checked("promtool", "test", "rules", TESTS)


@pytest.mark.outside("Prometheus")
def test_the_expressions_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(expressions())]
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))

    checked("promtool", "check", "rules", path)


def test_alerts_and_panels_ask_for_metrics_that_there_are() -> None:
    known = {metric.name for metric in METRICS}
    known |= {f"{metric.name}_bucket" for metric in METRICS if metric.kind is MetricKind.HISTOGRAM}
    asked = {
        name for text in (*(rule["expr"] for rule in alerts()), *expressions()) for name in NAME.findall(text)
    }

    assert asked <= known


def test_every_alert_says_on_the_page_for_operators_what_it_means_and_what_to_do() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    told = re.findall(r"^#### (Fencerow\w+)$", page, re.MULTILINE)

    assert told == [rule["alert"] for rule in alerts()]
    for rule in alerts():
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")
