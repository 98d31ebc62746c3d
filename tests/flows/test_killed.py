"""Workers are killed again and again while flows run: each flow ends once, and each effect is there once."""

from __future__ import annotations

import pytest

from tests.events.conftest import url_of
from tests.flows.campaign.load import next_kill, run
from tests.kit.jobs import AnyEngine

FLOWS, KILLS = 20, 20


@pytest.mark.prove
def test_every_flow_ends_once_whoever_is_killed(engine: AnyEngine) -> None:
    found = run(engine, url_of(engine), flows=FLOWS, kills=KILLS, seed=7)

    assert found.wrong == []
    assert found.kills >= KILLS * 3 // 4  # the last ones may find all done, where a look comes late


def test_kills_suffice_however_late_a_look_comes() -> None:
    effects, kills, done, killed = 249, 30, 0, 0
    due_at = next_kill(done, effects, kills)
    for late in (1, 7, 40, 3, 60, *[1] * 138):
        done += late
        if killed < kills and done >= due_at:
            killed += 1
            due_at = next_kill(done, effects, kills - killed)

    assert (done, killed) == (effects, kills)
