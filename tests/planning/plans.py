"""Plans of tests, as they are written."""

from __future__ import annotations

from typing import Any

import msgspec

from fencerow.planning.plan import By, Plan
from fencerow.planning.reading import understood
from fencerow.planning.report import CapacityReport, calculated
from fencerow.planning.written import WrittenPlan

PROBER: dict[str, Any] = {
    "workers": {"processes": 5, "slots": 20},
    "keys": {"provider": {"entities": 18}},
    "jobs": {
        "deal": {"key": "provider", "rate": 4, "duration_s": 300},
        "retrieval": {"key": "provider", "rate": 6, "duration_s": 120},
    },
}


def written_of(written: dict[str, Any]) -> WrittenPlan:
    return msgspec.convert(written, WrittenPlan)


def plan_of(written: dict[str, Any]) -> Plan:
    return understood(written_of(written))


def report_of(written: dict[str, Any], by: By = By.P95) -> CapacityReport:
    return calculated(plan_of(written), by)


def changed(written: dict[str, Any], **more: Any) -> dict[str, Any]:
    """With other tables; of a dict in a dict, what is said wins."""
    merged = dict(written)
    for name, value in more.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = changed(merged[name], **value) if both else value
    return merged
