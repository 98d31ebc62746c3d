"""Part B of the four systems, what its operators watch: the page that Prometheus reads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fencerow import State
from fencerow.metrics import Metrics
from tests.kit.pace import PATIENCE_S
from tests.whole.systems import dealbot
from tests.whole.systems.outside import until
from tests.whole.systems.stage import STEADY, Stage
from tests.whole.systems.watching import Watch


@pytest.fixture
async def stage(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    made = Stage(dealbot, url, monkeypatch)
    await made.open(**STEADY)
    yield made
    await made.close()


@pytest.mark.scenario("B.14")
async def test_the_page_tells_what_waits_runs_and_ended_and_falls_to_zero_with_the_queue(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By job type and queue; the ages are those of the oldest."""
    dealbot.provider.script("hang", "value error")
    watch, client = Watch(monkeypatch), stage.app.client
    with Metrics(stage.app) as metrics:
        first = await dealbot.deal.using(key="sp-1").asubmit("sp-1")
        repeat = await dealbot.deal.using(key="sp-1").asubmit("sp-1")
        stage.pass_time(300.0)
        waits = await watch.page(metrics)
        async with stage.app.worker(slots=1):
            await until(dealbot.provider.calls, "the run")
            second = await dealbot.deal.asubmit("sp-2")
            await client.apause_queue("deals", reason="the chain is reorganised")
            stage.pass_time(60.0)
            runs = await watch.page(metrics)
            dealbot.provider.release()
            await client.aresume_queue("deals")
            ended = [await client.await_ended(each.id, PATIENCE_S) for each in (first, second)]
        over = await watch.page(metrics)

    assert repeat.id == first.id and [each.state for each in ended] == [State.SUCCEEDED, State.FAILED]
    assert waits["fencerow_jobs", "deals", "due"] == 1
    assert waits["fencerow_oldest_queued_age_seconds", "deals"] >= 300
    assert waits["fencerow_submits_total", "deal", "inserted", "deals"] == 1
    assert waits["fencerow_submits_total", "deal", "existing", "deals"] == 1
    assert (runs["fencerow_jobs", "deals", "due"], runs["fencerow_jobs", "deals", "running"]) == (1, 1)
    assert runs["fencerow_queue_paused", "deals"] == 1
    assert runs["fencerow_oldest_running_age_seconds", "deal", "deals"] >= 60
    assert over["fencerow_jobs_finished_total", "deal", "succeeded", "deals"] == 1
    assert over["fencerow_jobs_finished_total", "deal", "failed", "deals"] == 1
    assert over["fencerow_jobs_claimed_total", "deals"] == 2
    assert over["fencerow_job_duration_seconds_count", "deal", "deals"] == 2
    assert {over["fencerow_jobs", "deals", each] for each in ("due", "running")} == {0}
    assert over["fencerow_oldest_queued_age_seconds", "deals"] == over["fencerow_queue_paused", "deals"] == 0
    assert over["fencerow_oldest_running_age_seconds", "deal", "deals"] == 0
