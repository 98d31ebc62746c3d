"""Part B of the four systems, its lock per provider: an exclusive key, with jobs that schedules make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from fencerow import Handle, JobFailed, State
from fencerow.schedules import ticking
from tests.kit.pace import PATIENCE_S
from tests.kit.plainly import plainly
from tests.whole.systems import dealbot_keys as dealbot
from tests.whole.systems.outside import until
from tests.whole.systems.stage import Stage


@pytest.fixture
async def stage(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    made = Stage(dealbot, url, monkeypatch)
    await made.open(slots=20, schedules="off")
    await dealbot.app.schedules.areconcile()
    yield made
    await made.close()


async def fired() -> list[str]:
    """All that is due, as schedulers make it."""
    ids: list[str] = []
    while jobs := (await dealbot.app.engine.arun(ticking.tick())).jobs:
        ids += [job.id for job in jobs]
    return ids


@pytest.mark.scenario("B.1")
async def test_five_workers_run_one_job_per_provider_and_all_providers_at_once(stage: Stage) -> None:
    for name in ("deal", "retrieval"):
        await dealbot.app.schedules.arefresh(name)
    dealbot.service.script("hang")
    stage.clock.advance(3600)
    ids = await fired()
    assert len(ids) in range(6 * 18, 6 * 18 + 70), "six of each provider, and a cleanup each minute"

    async with AsyncExitStack() as workers:
        for _ in range(5):
            await workers.enter_async_context(dealbot.app.worker())
        await until(lambda: len(dealbot.service.calls()) == 19, "a call of each provider, and the cleanup's")
        assert sorted(set(dealbot.service.calls())) == ["all", *dealbot.providers]
        dealbot.service.script("ok")
        dealbot.service.release()
        await until(lambda: len(dealbot.order) == len(ids), "all jobs")

    assert set(dealbot.most.values()) == {1}, "two jobs of one provider ran at once"


@pytest.mark.scenario("B.2")
async def test_two_jobs_with_one_key_exclude_each_other_and_one_job_with_two_keys_does_not(
    stage: Stage,
) -> None:
    dealbot.service.script("hang")
    first, second = await dealbot.deal.asubmit("sp-01"), await dealbot.deal.asubmit("sp-02")
    async with dealbot.app.worker():
        await until(lambda: len(dealbot.service.calls()) == 2, "both providers")
        behind = await dealbot.retrieval.asubmit("sp-01")
        assert await behind.astatus() is State.WAITING
        dealbot.service.release()
        for handle in (first, second, behind):
            await handle.aresult(timeout_s=PATIENCE_S)

    assert sorted(dealbot.service.calls()) == ["sp-01", "sp-01", "sp-02"]
    assert dealbot.most["sp-01"] == 1 and dealbot.order[-1] == "retrieval"


@pytest.mark.scenario("B.3")
async def test_ten_fires_of_a_busy_key_wait_untouched_and_run_in_order(stage: Stage) -> None:
    dealbot.service.script("hang")
    stage.clock.advance(601)
    ids = await fired()
    assert len(ids) in (10, 11)
    handles: list[Handle[str]] = [dealbot.app.client.handle(each) for each in ids]
    async with dealbot.app.worker():
        await until(dealbot.service.calls, "the first")
        waiting = [await each.arefresh() for each in handles[1:]]
        assert {(each.state, each.attempt) for each in waiting} == {(State.WAITING, 0)}
        dealbot.service.release()
        for handle in handles:
            await handle.aresult(timeout_s=PATIENCE_S)

    jobs = [await each.arefresh() for each in handles]
    assert {each.attempt for each in jobs} == {1}
    ends = [each.ended_at_us or 0 for each in jobs]
    assert ends == sorted(ends) and dealbot.most["all"] == 1
    assert [len(stage.happenings(each, "submitted")) for each in handles] == [1] * len(handles)


@pytest.mark.scenario("B.13")
async def test_a_deal_over_its_time_ends_once_and_frees_its_key(stage: Stage) -> None:
    dealbot.service.script("hang", "ok")
    late = await dealbot.deal.using(timeout_s=0.2).asubmit("sp-01")
    behind = await dealbot.deal.asubmit("sp-01")

    async with dealbot.app.worker():
        assert await behind.aresult(timeout_s=PATIENCE_S) == "deal of sp-01"

    with pytest.raises(JobFailed):
        await late.aresult(timeout_s=PATIENCE_S)
    job = await late.arefresh()
    assert (job.state, job.attempt, job.failures) == (State.FAILED, 1, 1)
    assert (stage.heard.count("failed"), stage.heard.count("succeeded")) == (1, 1)
    assert plainly(dealbot.service.calls) == ["sp-01", "sp-01"] and dealbot.most["sp-01"] == 1
    (freed,), (claimed,) = stage.happenings(late, "failed"), stage.happenings(behind, "claimed")
    assert claimed.at_us >= freed.at_us, "the next one did not wait for the key"
