"""Suspects run apart: in a child process where one can find them, else with their worker for themselves."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.core.worker import dispatch, roster
from fencerow.core.worker import pool as pool_module
from fencerow.core.worker.attempt import Attempt
from tests.core.worker.stage import handler, kinds, read, submit, working
from tests.core.worker.test_damaged import DEEP, write
from tests.kit.jobs import QUEUE, AnyEngine, claim, register
from tests.kit.pace import PATIENCE_S
from tests.processes import shop
from tests.processes.conftest import settings
from tests.processes.test_children import HANDLERS


async def suspect(engine: AnyEngine, name: str, args: dict[str, Any] | None = None, **fields: Any) -> str:
    """A job whose worker died while it ran."""
    job_id = await submit(engine, name, args, **fields)
    dead = register(engine)
    assert [job.id for job in claim(engine, dead, names=[name])] == [job_id]
    assert await engine.arun(store.retire(holder=dead))
    await engine.arun(store.reclaim([dead], limit=10, actor="test"))
    return job_id


async def test_a_suspect_runs_in_a_child_and_is_none_any_more(engine: AnyEngine) -> None:
    job_id = await suspect(engine, "suspected")
    async with working(engine, *HANDLERS, config=settings(engine)) as stage:
        first = await stage.ended(job_id)
        second = await stage.run("suspected")

    assert (first.state, first.attempt, first.crashes) == ("succeeded", 2, 0)
    assert first.result != os.getpid() == second.result


async def test_arguments_that_nobody_can_read_are_no_crash(engine: AnyEngine) -> None:
    """They cross to the child all the same: what it hears must not end it, or leave it deaf."""
    job_id = await suspect(engine, "suspected")
    write(engine, job_id, "args", f"'{DEEP}'")
    async with working(engine, *HANDLERS, config=settings(engine)) as stage:
        job = await stage.ended(job_id)

    assert (job.state, job.crashes) == ("failed", 0)
    assert "FR-308" in job.error["message"]


async def test_a_suspect_of_a_batch_runs_there_alone(lite: AnyEngine, tmp_path: Path) -> None:
    job_id = await suspect(lite, "batch", {"value": str(tmp_path)}, crashes_max=1)
    async with working(lite, *HANDLERS, config=settings(lite)) as stage:
        job = await stage.ended(job_id)

    assert (job.state, job.attempt, job.crashes) == ("failed", 2, 1)
    assert "SIGKILL" in job.error["message"]


async def test_a_suspect_of_a_batch_has_its_middleware_there(lite: AnyEngine) -> None:
    job_id = await suspect(lite, "tell_tone", {"value": None})
    async with working(lite, *HANDLERS, config=settings(lite)) as stage:
        pid, heard = (await stage.ended(job_id, within_s=PATIENCE_S)).result

    assert pid != os.getpid()
    assert heard == f"batch middleware of {pid}"


async def test_suspects_run_beside_each_other_once_one_has_ended_well(
    lite: AnyEngine, tmp_path: Path
) -> None:
    """Each of the last two waits for the other, so they end only together."""
    first = await suspect(lite, "suspected")
    pair = [await suspect(lite, "meets", {"folder": str(tmp_path), "count": 2}) for _ in range(2)]
    async with working(lite, *HANDLERS, config=settings(lite)) as stage:
        await stage.ended(first, within_s=PATIENCE_S)
        met = [await stage.ended(each, within_s=PATIENCE_S) for each in pair]

    assert {(job.state, job.attempt, job.crashes) for job in met} == {("succeeded", 2, 0)}
    assert len({job.result for job in met}) == 2, "each has a process of its own"


async def test_only_the_one_that_dies_is_counted(engine: AnyEngine, tmp_path: Path) -> None:
    poison = await suspect(engine, "ordinary", {"kind": "sigkill", "folder": str(tmp_path)}, crashes_max=2)
    healthy = [await suspect(engine, "suspected") for _ in range(6)]
    async with working(engine, *HANDLERS, config=settings(engine)) as stage:
        dead = await stage.ended(poison, within_s=PATIENCE_S)
        others = [await stage.ended(each, within_s=PATIENCE_S) for each in healthy]

    assert (dead.state, dead.attempt, dead.crashes) == ("failed", 3, 2)
    assert {(job.state, job.attempt, job.crashes) for job in others} == {("succeeded", 2, 0)}


async def test_a_long_one_does_not_hold_back_the_others(
    lite: AnyEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for the other, and nothing has ended well before: one more starts when the first has lived a while."""
    monkeypatch.setattr(roster, "PATIENCE_S", 0.1)
    pair = [await suspect(lite, "meets", {"folder": str(tmp_path), "count": 2}) for _ in range(2)]
    async with working(lite, *HANDLERS, config=settings(lite)) as stage:
        assert [(await stage.ended(each)).state for each in pair] == ["succeeded", "succeeded"]


async def test_a_suspect_that_shall_never_leave_the_worker_runs_here(lite: AnyEngine) -> None:
    job_id = await suspect(lite, "suspected")
    stays = replace(shop.suspected.handler, process=False)
    async with working(lite, stays, config=settings(lite)) as stage:
        job = await stage.ended(job_id)

    assert job.result == os.getpid()
    assert await kinds(lite, job_id) == ["reclaimed", "alone"]


async def test_a_suspect_that_no_child_finds_has_the_worker_for_itself(engine: AnyEngine) -> None:
    log: list[str] = []
    go = asyncio.Event()

    async def slow() -> None:
        log.append("slow begins")
        await go.wait()
        log.append("slow ends")

    async def quick() -> None:
        log.append("quick")

    async def local() -> None:
        log.append("local begins")
        await asyncio.sleep(0.3)
        log.append("local ends")

    job_id = await suspect(engine, "local")
    await submit(engine, "slow")
    async with working(engine, slow, quick, config=settings(engine)) as stage:
        await stage.heard.wait("claimed")
        stage.worker._handlers["local"] = handler(local)
        for claimer in stage.worker._parts.claims.claimers:
            claimer._handlers = stage.worker._handlers  # it learns of the suspect only now
        stage.worker._parts.wakeups.look_again()
        await stage.heard.until(
            lambda: stage.worker._parts.dispatch.withheld_for is not None or bool(stage.heard.all("renewed"))
        )
        other = await stage.submit("quick")
        go.set()
        await stage.ended(job_id)
        await stage.ended(other)

    assert log.index("local ends") == log.index("local begins") + 1, "something ran beside it"
    assert log.index("slow ends") < log.index("local begins")


async def test_it_runs_beside_others_that_do_not_end_soon(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not wait for ever; and the next one, soon after, keeps nobody waiting at all."""
    monkeypatch.setattr(dispatch, "ALONE_WAIT_S", 0.1)
    started, go = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        started.set()
        await go.wait()

    async def local() -> None: ...

    async with working(lite, slow, local, config=settings(lite)) as stage:
        await stage.submit("slow")
        await started.wait()
        job_id = await suspect(lite, "local")
        stage.worker._parts.wakeups.look_again()
        first = await stage.ended(job_id)
        monkeypatch.setattr(dispatch, "ALONE_WAIT_S", 3600.0)
        second = await suspect(lite, "local")
        stage.worker._parts.wakeups.look_again()
        await stage.ended(second)
        assert (await stage.run("local")).state == "succeeded", "the others are served"
        assert not stage.heard.all("succeeded", job="slow")
        go.set()

    assert (first.state, first.suspect, first.failures, first.crashes) == ("succeeded", True, 0, 0)
    assert await kinds(lite, job_id) == ["reclaimed"], "it was not alone"


async def test_while_it_waits_for_a_slot_the_others_are_served(
    lite: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspect that no child finds is claimed while all slots are taken, and its neighbours in another queue go on."""
    monkeypatch.setattr(dispatch, "ALONE_WAIT_S", 0.1)
    monkeypatch.setattr(pool_module, "STALE_S", 3600.0)
    started, go = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        started.set()
        await go.wait()

    async def local() -> None: ...

    queues = {QUEUE: 1, "other": 1}
    async with working(lite, slow, local, config=settings(lite), queues=queues) as stage:
        await stage.submit("slow")
        await started.wait()
        job_id = await suspect(lite, "local")
        pool = stage.worker._parts.roster.pools[0]
        (claimed,) = claim_suspect(lite, stage.worker.holder, "local")
        attempt = Attempt(claimed, stage.worker.holder or "", stage.worker._handlers["local"])
        stage.worker._parts.life.claimed(pool, [attempt])
        assert (await stage.run("local", queue="other")).state == "succeeded"
        go.set()
        assert (await stage.ended(job_id)).state == "succeeded"


def claim_suspect(engine: AnyEngine, holder: str | None, name: str) -> list[Claimed]:
    return engine.run(store.claim_suspect(QUEUE, holder=holder or "", names=[name], margin_s=60.0))


async def test_a_death_while_it_has_the_worker_for_itself_is_counted(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real death is in tests/whole/deaths; here the note is what counts."""
    started = asyncio.Event()

    async def local() -> None:
        started.set()
        await asyncio.sleep(60)

    job_id = await suspect(engine, "local", crashes_max=1)
    async with working(engine, local, config=settings(engine)) as stage:
        await started.wait()
        holder = stage.worker.holder
        assert holder is not None
        assert await engine.arun(store.retire(holder=holder))
        await engine.arun(store.reclaim([holder], limit=10, actor="test"))
    job = await read(engine, job_id)

    assert (job.state, job.crashes) == ("failed", 1)
    assert "while it ran there alone" in job.error["message"]
