"""Part B of the four systems: dealbot, rebuilt in dealbot.py, at the level of the library."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fencerow import JobFailed, State
from tests.systems import dealbot
from tests.systems.stage import Stage


@pytest.fixture
async def stage(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    made = Stage(dealbot, url, monkeypatch)
    await made.open()
    yield made
    await made.close()


@pytest.mark.scenario("B.16")
async def test_a_dead_dependency_is_an_error_and_no_success(stage: Stage) -> None:
    dealbot.provider.script("dead")
    handle = dealbot.deal.submit("sp-1")

    await stage.work()

    assert handle.status() is State.FAILED
    with pytest.raises(JobFailed) as caught:
        handle.result(timeout_s=10)
    assert caught.value.error.type == "ConnectionError"
    assert (stage.heard.count("failed"), stage.heard.count("succeeded")) == (1, 0)
    assert dealbot.app.telemetry.counters.get("jobs_failed") == 1
