"""What the prober's runbook calculates, from a plan of its jobs; and what it says of a provider that has too many."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.planning.bounds import BoundKind
from tests.planning.plans import PROBER, changed, report_of

SPLIT: dict[str, Any] = {
    **changed(PROBER, jobs={"deal": {"queue": "deals"}, "retrieval": {"queue": "retrievals"}}),
    "workers": {"processes": 5, "queues": {"deals": 10, "retrievals": 10}},
}


@pytest.mark.scenario("B.15")
def test_the_capacity_report_has_the_figures_of_the_runbook() -> None:
    shared, split = report_of(PROBER), report_of(SPLIT)
    (key, _) = shared.bounds

    assert key.kind is BoundKind.KEY and key.load == 32 and key.left == 28
    assert [each.entities_max for each in (*shared.groups, *split.groups)] == [187, 150]
    jobs = {"deal": {"rate": 9}, "retrieval": {"rate": 8}}
    too_many = report_of(changed(PROBER, jobs=jobs, workers={"processes": 1000}))
    assert too_many.bounds[0].load == 61
    assert not too_many.bounds[0].keeps_up and not too_many.ok
    assert too_many.groups[0].entities_max == 0
