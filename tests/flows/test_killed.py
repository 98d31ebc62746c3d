"""Workers are killed again and again while flows run: each flow ends once, and each effect is there once."""

from __future__ import annotations

import pytest

from tests.events.conftest import url_of
from tests.flows.campaign.load import run
from tests.kit.jobs import AnyEngine

FLOWS, KILLS = 20, 20


@pytest.mark.prove
def test_every_flow_ends_once_whoever_is_killed(engine: AnyEngine) -> None:
    found = run(engine, url_of(engine), flows=FLOWS, kills=KILLS, seed=7)

    assert found.wrong == []
    assert found.kills == KILLS
