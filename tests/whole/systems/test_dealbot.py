"""Part B of the four systems: dealbot, rebuilt in dealbot.py, at the level of the library."""

from __future__ import annotations

import asyncio
import contextvars
import platform
import time
from pathlib import Path

import pytest

from fencerow import Handle, JobFailed, State
from fencerow.errors import MutexBusy
from fencerow.guards.mutex import Mutex, mutexes
from tests.kit.pace import PATIENCE_S, slower
from tests.kit.plainly import plainly
from tests.whole.systems import dealbot
from tests.whole.systems.outside import until
from tests.whole.systems.stage import Stage

KEY = "sp:sp-1"
# What a machine with other work to do may add to a bound; a recovery that does not happen exceeds any.
ALLOWANCE_S = slower(60.0)
SYSTEM = dealbot  # which `stage` opens


def standing() -> mutexes.MutexRecord:
    found = dealbot.app.engine.run(mutexes.look(KEY))
    assert found is not None
    return found


async def taken_by_others(wait_s: float = 0.0) -> Mutex:
    mutex = Mutex(dealbot.app, KEY, wait_s=wait_s)
    await asyncio.create_task(mutex.aacquire(), context=contextvars.Context())
    return mutex


def ended(handles: list[Handle[str]]) -> list[Handle[str]]:
    return [each for each in handles if plainly(each.status) is State.FAILED]


@pytest.mark.scenario("B.4")
async def test_of_twenty_who_want_it_one_gets_it_and_the_row_tells_who(stage: Stage) -> None:
    await stage.open(slots=20)
    dealbot.provider.script("hang")
    before_us = stage.now_us()
    handles = [await dealbot.deal_alone.asubmit("sp-1") for _ in range(20)]

    async with dealbot.app.worker():
        await until(lambda: len(ended(handles)) == 19, "nineteen refusals")
        (winner,) = [each for each in handles if await each.astatus() is State.RUNNING]
        row = standing()
        dealbot.provider.release()
        assert await winner.aresult(timeout_s=PATIENCE_S) == "deal of sp-1"

    assert dealbot.provider.calls() == ["sp-1"]
    assert (row.job_id, row.job_name, row.host) == (
        winner.id,
        (await winner.arefresh()).name,
        platform.node(),
    )
    assert row.purpose == "deal" and before_us <= row.since_us <= stage.now_us()
    with pytest.raises(JobFailed) as caught:
        await ended(handles)[0].aresult(timeout_s=PATIENCE_S)
    assert winner.id in caught.value.error.message


@pytest.mark.scenario("B.5")
async def test_only_the_owner_gives_it_back(stage: Stage) -> None:
    dealbot.provider.script("hang")
    handle = await dealbot.deal_alone.asubmit("sp-1")
    async with dealbot.app.worker():
        await until(dealbot.provider.calls, "the deal")
        row = standing()

        assert await Mutex(dealbot.app, KEY).arelease() is False
        stranger = mutexes.release(KEY, holder=handle.id, token=row.token)
        assert await dealbot.app.engine.arun(stranger) is False
        assert (standing().holder, standing().token) == (row.holder, row.token)

        dealbot.provider.release()
        await handle.aresult(timeout_s=PATIENCE_S)
    mutex = await taken_by_others()
    assert mutex.token == row.token + 1
    assert await mutex.arelease() is True


@pytest.mark.prove
@pytest.mark.scenario("B.6")
@pytest.mark.timed
async def test_a_job_of_three_times_the_stale_time_keeps_it(stage: Stage) -> None:
    stale_s = slower(3.0)
    dealbot.provider.script("hang")
    handle = await dealbot.deal_alone.asubmit("sp-1", stale_s)
    async with dealbot.app.worker():
        await until(dealbot.provider.calls, "the deal")
        token, since_us = standing().token, standing().since_us
        while stage.now_us() - since_us < 3.1 * stale_s * 1e6:
            with pytest.raises(MutexBusy):
                await taken_by_others(wait_s=0.3)
        dealbot.provider.release()
        assert await handle.aresult(timeout_s=PATIENCE_S) == "deal of sp-1"
    assert standing().token == token and not standing().is_held


@pytest.mark.prove
@pytest.mark.scenario("B.7")
@pytest.mark.timed
async def test_what_a_killed_process_held_is_free_within_the_stale_time(stage: Stage, tmp_path: Path) -> None:
    stale_s = slower(5.0)
    dealbot.provider.script("hang")
    await dealbot.deal_alone.asubmit("sp-1", stale_s)
    with stage.process(tmp_path / "worker.log", lease_s=3600) as worker:
        await until(dealbot.provider.calls, "the deal")
        with pytest.raises(MutexBusy):
            await taken_by_others()
        worker.kill()
        worker.wait()
        killed = time.monotonic()

        mutex = await taken_by_others(wait_s=PATIENCE_S)

        assert time.monotonic() - killed <= stale_s + ALLOWANCE_S
    assert mutex.token == 2
    assert await mutex.arelease() is True


@pytest.mark.scenario("B.16")
async def test_a_dead_dependency_is_an_error_and_no_success(stage: Stage) -> None:
    dealbot.provider.script("dead")
    handle = await dealbot.deal.asubmit("sp-1")

    await stage.work()

    assert await handle.astatus() is State.FAILED
    with pytest.raises(JobFailed) as caught:
        await handle.aresult(timeout_s=PATIENCE_S)
    assert caught.value.error.type == "ConnectionError"
    assert (stage.heard.count("failed"), stage.heard.count("succeeded")) == (1, 0)
    assert dealbot.app.telemetry.counters.get("jobs_failed") == 1
