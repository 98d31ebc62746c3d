"""Part C of the four systems, scenario 15: Tzurot with signed payloads, rebuilt in tzurot_signed.py."""

from __future__ import annotations

import pytest

from fencerow import App, JobFailed
from fencerow.db.sqlite import SqliteEngine
from tests.kit.plainly import plainly
from tests.whole.systems import tzurot_signed
from tests.whole.systems.stage import Stage

SYSTEM = tzurot_signed  # which `stage` opens


def altered(stage: Stage, job_id: str) -> None:
    """What somebody does who can write to the store and has no key."""
    lite = isinstance(stage.app.engine, SqliteEngine)
    table, mark = ("fencerow_jobs", "?") if lite else ("fencerow.jobs", "%s")
    with stage.connected() as db:
        changed = db.execute(
            f"UPDATE {table} SET args = replace(CAST(args AS text), 'hello', 'jello'){'' if lite else '::json'}"
            f" WHERE id = {mark}",
            (job_id,),
        )
        assert changed.rowcount == 1


@pytest.mark.scenario("C.15")
async def test_an_altered_payload_is_refused_and_counted_and_never_reaches_the_handler(stage: Stage) -> None:
    bad = await tzurot_signed.answer.asubmit("hello")
    good = await tzurot_signed.answer.asubmit("hello too")
    plainly(altered, stage, bad.id)

    await stage.work()

    with pytest.raises(JobFailed, match="payload_altered"):
        await bad.aresult(1)
    assert await good.aresult(1) == "reply of hello too"
    assert tzurot_signed.llm.calls() == ["hello too"]
    assert stage.heard.count("payload_altered") == 1
    assert stage.app.telemetry.counters.get("payloads_altered") == 1


@pytest.mark.scenario("C.15")
async def test_an_unsigned_payload_is_refused_while_signing_is_on(stage: Stage, url: str) -> None:
    async with App(url) as stranger:

        @stranger.job(queue="ai-requests")
        async def answer(message: str) -> str:
            return message

        handle = await answer.asubmit("hello")

    await stage.work()

    job = await stage.app.client.aget(handle.id)
    assert (job.state, job.attempt) == ("failed", 1)
    assert job.error is not None and job.error["code"] == "payload_altered"
    assert tzurot_signed.llm.calls() == []
    assert stage.heard.count("payload_altered") == 1
