"""The bus under load, in its short form: real processes, drainers killed, and a reader by ids that loses events."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.events.bus.load import run
from tests.events.bus.plan import Plan
from tests.events.bus.verdict import judge
from tests.events.conftest import url_of
from tests.kit.jobs import AnyEngine

pytestmark = pytest.mark.prove

LAG_MAX_S = 240.0  # on a busy machine; what nobody reads waits for ever


@pytest.mark.timeout(600)
def test_every_committed_event_reaches_each_group_in_order(engine: AnyEngine, tmp_path: Path) -> None:
    is_postgres = engine.dialect == "postgres"
    plan = Plan(
        url=url_of(engine),
        folder=str(tmp_path),
        events=1200 if is_postgres else 400,
        publishers=20 if is_postgres else 4,
        drainers=2,
        kills=2,
        seed=20261121,
        lease_s=2.0,
        keys=30,
    )

    found = judge(run(plan))

    assert not found.wrong, found
    assert found.facts["rolled_back"] > 0 and found.facts["drainers_killed"] == 2
    assert found.facts["lag_max_s"] < LAG_MAX_S
    if is_postgres:
        assert found.plain_lost > 0, "the load is too tame: even a reader by ids sees everything"
