"""How an attempt in a child process ends before its handler wants to: asked, then by an exception, then killed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.store import store
from tests.core.worker.stage import Stage, read, until
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S
from tests.processes.conftest import settings
from tests.processes.test_children import count, crew
from tests.processes.test_poison import known, nothing_left
from tests.processes.test_suspects import suspect

pytestmark = pytest.mark.timed

# Of a busy machine. Not more when it is played again: with the bounds that are set by default (15 s) it would be later.
LATE_S = 12.0


async def hanging(stage: Stage, folder: Path, how: str, **fields: Any) -> str:
    """A job that has begun to hang in a child."""
    job_id = await stage.submit("hangs", {"folder": str(folder), "how": how}, **fields)
    await until(lambda: len(known(folder)) == 2, within_s=PATIENCE_S, what="the handler's start")
    return job_id


@pytest.mark.parametrize("how", [pytest.param("obeys", marks=pytest.mark.prove), "ignores"])
async def test_a_cancel_is_an_exception_and_then_the_end_of_the_process(
    engine: AnyEngine, tmp_path: Path, how: str
) -> None:
    async with crew(engine, settings(engine)) as stage:
        job_id = await hanging(stage, tmp_path, how)
        await engine.arun(store.cancel(job_id, actor="ada"))
        job = await stage.ended(job_id, within_s=PATIENCE_S)
        if how == "ignores":
            await nothing_left(tmp_path)
        warm = await stage.run("where")

    assert (job.state, job.attempt, job.crashes) == ("cancelled", 1, 0)
    assert (warm.result["pid"] == known(tmp_path)[0]) == (how == "obeys")
    await nothing_left(tmp_path)


@pytest.mark.prove
async def test_the_kill_comes_when_it_was_promised(lite: AnyEngine, tmp_path: Path) -> None:
    """Seen within renew_s, raised cancel_raise_s later, killed cancel_kill_s after that."""
    config = settings(lite, cancel_raise_s=0.5, cancel_kill_s=1.0)
    async with crew(lite, config) as stage:
        job_id = await hanging(stage, tmp_path, "ignores")
        asked = time.monotonic()
        await lite.arun(store.cancel(job_id, actor="ada"))
        await stage.ended(job_id, within_s=PATIENCE_S)
        took_s = time.monotonic() - asked

    bound_s = config.cancel_raise_s + config.cancel_kill_s
    assert bound_s <= took_s < bound_s + config.renew_s + LATE_S


@pytest.mark.prove
async def test_a_suspect_that_ignores_its_cancel_is_killed_though_it_was_not_declared_for_a_child(
    lite: AnyEngine, tmp_path: Path
) -> None:
    job_id = await suspect(lite, "ordinary", {"kind": "hang", "folder": str(tmp_path)})
    async with crew(lite, settings(lite)) as stage:
        await until(lambda: len(known(tmp_path)) == 1, within_s=PATIENCE_S, what="the handler's start")
        await lite.arun(store.cancel(job_id, actor="ada"))
        job = await stage.ended(job_id, within_s=PATIENCE_S)

    assert (job.state, job.attempt, job.crashes) == ("cancelled", 2, 0)
    assert known(tmp_path)[0] != os.getpid()
    await nothing_left(tmp_path)


@pytest.mark.parametrize("how", [pytest.param("obeys", marks=pytest.mark.prove), "ignores"])
async def test_a_time_limit_is_hard(lite: AnyEngine, tmp_path: Path, how: str) -> None:
    async with crew(lite, settings(lite)) as stage:
        job_id = await hanging(stage, tmp_path, how, timeout_s=1.5, attempts_max=1)
        job = await stage.ended(job_id, within_s=PATIENCE_S)
        if how == "ignores":
            await nothing_left(tmp_path)

    assert (job.state, job.failures, job.crashes) == ("failed", 1, 0)
    assert job.error["type"] == "fencerow.errors.AttemptTimeout"


@pytest.mark.prove
async def test_a_shutdown_hands_back_what_hangs_in_a_child(lite: AnyEngine, tmp_path: Path) -> None:
    async with crew(lite, settings(lite, shutdown_s=0.0)) as stage:
        job_id = await hanging(stage, tmp_path, "ignores")
    job = await read(lite, job_id)

    assert (job.state, job.attempt, job.failures, job.crashes) == ("queued", 1, 0, 0)
    assert known(tmp_path)[0] != os.getpid()
    await nothing_left(tmp_path)


@pytest.mark.prove
async def test_what_is_lost_is_ended(lite: AnyEngine, tmp_path: Path) -> None:
    """Others have declared the worker dead: its child must not go on beside the next attempt."""
    async with crew(lite, settings(lite)) as stage:
        await hanging(stage, tmp_path, "ignores", timeout_s=600.0)
        holder = stage.worker.holder
        assert holder is not None
        assert await lite.arun(store.retire(holder=holder))
        await nothing_left(tmp_path)


@pytest.mark.prove
async def test_a_child_may_hold_the_one_writer_no_longer_than_others_can_wait(lite: AnyEngine) -> None:
    with lite.session() as session:
        session.connection.execute("CREATE TABLE effect (n integer)")
    async with crew(lite, settings(lite, lease_s=3.0)) as stage:  # a third of the lease is 1 s
        job = await stage.run("holds", attempts_max=1)

    assert (job.state, job.crashes) == ("failed", 0)
    assert job.error["type"] == "fencerow.errors.TransactionMisuse"
    assert count(lite, "effect") == 0
