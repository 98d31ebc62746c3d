"""Part D of the four systems, on rows of its own: ChatbotX, rebuilt in chatbotx_rows.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fencerow import State
from fencerow.guards.mutex import Mutex
from tests.kit.pace import PATIENCE_S
from tests.whole.systems import chatbotx_rows as chatbotx
from tests.whole.systems.outside import until
from tests.whole.systems.stage import STEADY, Stage

TABLES = """
CREATE TABLE ai_files (id TEXT PRIMARY KEY, status TEXT, vectors TEXT);
CREATE TABLE heavy_steps (id TEXT PRIMARY KEY, outcome TEXT, result TEXT);
CREATE TABLE sync_runs (id TEXT PRIMARY KEY, state TEXT, attempts INTEGER, seen_at BIGINT,
                        scanned INTEGER, total INTEGER, imported INTEGER)
"""
WORKERS = 10


@pytest.fixture
async def stage(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    made = Stage(chatbotx, url, monkeypatch)
    await made.open(**STEADY)
    with made.connected() as db:
        for table in TABLES.split(";"):
            db.execute(table)
        db.execute("INSERT INTO ai_files VALUES ('faq', 'pending', NULL)")
        db.execute("INSERT INTO heavy_steps VALUES ('onboarding', 'pending', NULL)")
        db.execute("INSERT INTO sync_runs VALUES ('run', 'init', 0, NULL, 0, 0, 0)")
    yield made
    await made.close()


def row(stage: Stage, table: str) -> tuple[Any, ...]:
    with stage.connected() as db:
        (found,) = db.execute(f"SELECT * FROM {table}").fetchall()
    return tuple(found)


@pytest.mark.scenario("D.8")
async def test_of_ten_workers_one_embeds_the_file(stage: Stage) -> None:
    handles = [await chatbotx.embed_file.asubmit("faq") for _ in range(WORKERS)]
    workers = [chatbotx.app.worker({"knowledge": 1}) for _ in range(WORKERS)]
    for worker in workers:
        await worker.start()
    results = [await handle.aresult(timeout_s=PATIENCE_S) for handle in handles]
    for worker in workers:
        await worker.stop()

    assert sorted(results) == ["embedded", *["somebody else's"] * (WORKERS - 1)]
    assert chatbotx.provider.calls() == ["faq"]
    assert row(stage, "ai_files") == ("faq", "done", "vectors of faq")


@pytest.mark.scenario("D.10")
async def test_a_busy_workspace_is_asked_for_eight_times_more_and_then_the_attempt_fails(
    stage: Stage,
) -> None:
    """Its slot is free meanwhile, and no attempt of its budget is used."""
    async with chatbotx.app.worker({"providers": 1}):
        async with Mutex(chatbotx.app, "workspace:acme", stale_s=3600):
            handle = await chatbotx.send.asubmit("acme")
            for deferral, delay_s in enumerate((2, 4, 8, 16, 30, 30, 30, 30), 1):
                job = await stage.attempted(handle, deferral)
                assert (job.state, job.snoozes, job.failures) == (State.QUEUED, deferral, 0)
                assert delay_s / 2 - 0.001 <= stage.delay_s(handle, "snoozed") <= delay_s + 0.001
                other = await chatbotx.send.asubmit(f"other {deferral}")
                assert await other.aresult(timeout_s=PATIENCE_S)
                stage.pass_until(job.run_at_us)
            job = await stage.attempted(handle, 9)
            assert (job.state, job.snoozes, job.failures) == (State.QUEUED, 8, 1)
            assert "MutexBusy" in str(stage.happenings(handle, "retried")[-1].detail)

        stage.pass_until(job.run_at_us)
        assert await handle.aresult(timeout_s=PATIENCE_S) == "message of acme"
    assert (await handle.arefresh()).failures == 1


@pytest.mark.scenario("D.11")
async def test_a_result_that_comes_after_the_timeout_was_noted_is_not_written(stage: Stage) -> None:
    assert await chatbotx.steps.amove("time_out", "onboarding") is not None

    assert await chatbotx.steps.amove("succeed", "onboarding", values={"result": "late"}) is None

    assert row(stage, "heavy_steps") == ("onboarding", "timed_out", None)


@pytest.mark.scenario("D.12")
async def test_a_run_that_was_seen_nine_minutes_ago_is_not_taken_and_one_of_eleven_is(stage: Stage) -> None:
    assert await chatbotx.runs.amove("claim", "run") is not None

    stage.clock.advance(9 * 60)
    assert await chatbotx.runs.atake("claim") == []

    stage.clock.advance(2 * 60)
    (taken,) = await chatbotx.runs.atake("claim")
    assert taken["attempts"] == 2


@pytest.mark.scenario("D.12")
async def test_after_five_attempts_it_is_failed(stage: Stage) -> None:
    """By the reaper, in any worker; it is not claimed a sixth time."""
    for _ in range(5):
        assert await chatbotx.runs.amove("claim", "run") is not None
        stage.clock.advance(11 * 60)
    assert await chatbotx.runs.amove("claim", "run") is None

    async with chatbotx.app.worker():
        await until(lambda: row(stage, "sync_runs")[1] != "running", "the reaper's move")

    assert row(stage, "sync_runs")[1:3] == ("failed", 5)


@pytest.mark.scenario("D.12")
async def test_its_progress_is_seen_and_it_ends_partly_when_some_pages_failed(stage: Stage) -> None:
    chatbotx.provider.script("ok", "dead", "ok")

    handle = await chatbotx.sync_channel.asubmit("run", 3)
    await stage.work()

    assert await handle.aresult(timeout_s=PATIENCE_S) == "True"
    found = row(stage, "sync_runs")
    assert (found[1], found[2], found[4:]) == ("partial", 1, (3, 3, 2))
