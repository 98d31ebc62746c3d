"""Part D of the four systems: ChatbotX, rebuilt in chatbotx.py, at the level of the library."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fencerow import JobFailed, State
from tests.kit.pace import PATIENCE_S
from tests.whole.systems import chatbotx
from tests.whole.systems.outside import until
from tests.whole.systems.stage import STEADY, Stage


@pytest.fixture
async def stage(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    made = Stage(chatbotx, url, monkeypatch)
    await made.open()
    with made.connected() as db:
        db.execute("CREATE TABLE chunks (source TEXT, vector TEXT)")
    yield made
    await made.close()


@pytest.mark.scenario("D.6")
async def test_an_older_job_that_finishes_after_a_newer_one_does_not_overwrite_it(stage: Stage) -> None:
    chatbotx.embedder.script("hang", "ok")
    async with chatbotx.app.worker():
        older = await chatbotx.embed.asubmit("faq", 1, "as it was")
        await until(chatbotx.embedder.calls, "the older one's first call")
        newer = await chatbotx.embed.asubmit("faq", 2, "as it is")
        await newer.aresult(timeout_s=PATIENCE_S)
        chatbotx.embedder.release()
        await older.aresult(timeout_s=PATIENCE_S)

    assert [vector for _, vector in _chunks(stage)] == [f"vector of faq v2 {number}" for number in range(3)]


@pytest.mark.scenario("D.7")
async def test_the_same_content_again_writes_nothing_and_costs_no_call(stage: Stage) -> None:
    await chatbotx.embed.asubmit("faq", 1, "as it is")
    await stage.work()
    once, rows = chatbotx.embedder.calls(), _rows(stage)

    await chatbotx.embed.asubmit("faq", 1, "as it is")
    await chatbotx.embed.asubmit("faq", 2, "as it is")
    await stage.work()

    assert chatbotx.embedder.calls() == once and len(once) == chatbotx.CHUNKS
    assert _rows(stage) == rows, "the very same rows, not equal ones"


@pytest.mark.scenario("D.9")
async def test_a_handler_that_runs_twice_leaves_the_same_rows(stage: Stage) -> None:
    handle = await chatbotx.embed.asubmit("faq")
    await stage.work()
    once = _chunks(stage)

    await handle.arevive(reason="delivered again")
    await stage.work()

    assert len(chatbotx.embedder.calls()) == chatbotx.CHUNKS
    assert _chunks(stage) == once
    assert len(once) == chatbotx.CHUNKS


@pytest.mark.scenario("D.9")
async def test_a_raising_dependency_leaves_no_partial_rows_and_no_success(stage: Stage) -> None:
    """It raises after the first chunk was written; the second attempt finds it well."""
    await stage.open(**STEADY)
    chatbotx.embedder.script("ok", "dead", "ok")
    handle = await chatbotx.embed.asubmit("faq")

    async with chatbotx.app.worker():
        job = await stage.attempted(handle, 1)
        assert (job.state, job.failures) == (State.QUEUED, 1)
        assert _chunks(stage) == []
        assert "succeeded" not in stage.heard
        stage.pass_until(job.run_at_us)
        job = await stage.attempted(handle, 2)

    assert job.state is State.SUCCEEDED
    assert len(_chunks(stage)) == chatbotx.CHUNKS


@pytest.mark.scenario("D.11")
async def test_a_result_that_comes_after_the_timeout_is_not_written(stage: Stage) -> None:
    """The model hears no cancel, so the step is given up; what it returns in the end is refused."""
    await stage.open(cancel_kill_s=0.1)
    chatbotx.model.script("deaf")
    handle = await chatbotx.heavy_step.asubmit("onboarding")
    async with chatbotx.app.worker():
        ended = await chatbotx.app.client.await_ended(handle.id, timeout_s=PATIENCE_S)
        chatbotx.model.release()
        await until(chatbotx.model.answered_late, "the late answer")

    assert ended.state is State.FAILED
    assert await handle.arefresh() == ended
    with pytest.raises(JobFailed) as caught:
        await handle.aresult(timeout_s=PATIENCE_S)
    assert caught.value.error.type.endswith("AttemptTimeout")


@pytest.mark.scenario("D.14")
async def test_a_failure_is_recorded_once_on_the_final_attempt(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.open(**STEADY)
    chatbotx.embedder.script("dead")
    handle = await chatbotx.embed.asubmit("faq")

    async with chatbotx.app.worker():
        job = await stage.attempted(handle, 1)
        assert "failed" not in stage.heard
        stage.pass_until(job.run_at_us)
        await stage.attempted(handle, 2)

    assert stage.heard.count("failed") == 1
    assert chatbotx.app.telemetry.counters.get("jobs_failed") == 1
    assert [each.attempt for each in stage.happenings(handle, "failed")] == [2]
    assert sum(record.levelno == logging.ERROR for record in caplog.records) == 1


@pytest.mark.scenario("D.16")
async def test_ten_calls_of_one_workspace_are_a_second_apart_and_slow_no_other(stage: Stage) -> None:
    await stage.open(**STEADY)
    chatbotx.app.declare_limits()
    busy = [await chatbotx.call_provider.asubmit("acme") for _ in range(10)]
    free = [await chatbotx.call_provider.asubmit(f"other {number}") for number in range(10)]

    async with chatbotx.app.worker({"providers": 20}):
        for handle in free:
            assert await handle.aresult(timeout_s=PATIENCE_S)
        assert await busy[-1].astatus() is State.WAITING, "the others ended meanwhile"
        for handle in busy:
            await handle.aresult(timeout_s=PATIENCE_S)
            stage.pass_time(1)

    first, last = await busy[0].arefresh(), stage.happenings(busy[-1], "claimed")
    assert last[0].at_us - first.submitted_at_us >= 9_000_000
    assert {(await handle.arefresh()).attempt for handle in busy} == {1}


def _chunks(stage: Stage) -> list[Any]:
    with stage.connected() as db:
        return sorted(db.execute("SELECT source, vector FROM chunks").fetchall())


def _rows(stage: Stage) -> list[Any]:
    """The chunks with where they lie: a row that is written again lies elsewhere, or has another writer."""
    with stage.connected() as db:
        place = "rowid" if isinstance(db, sqlite3.Connection) else "CAST(ctid AS text), CAST(xmin AS text)"
        return sorted(db.execute(f"SELECT {place}, vector FROM chunks").fetchall())
