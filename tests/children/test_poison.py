"""Jobs that take their process down: they end failed with the reason, everybody else succeeds, and nothing is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from fencerow.config import Config
from fencerow.store import store
from tests.children.conftest import settings
from tests.children.test_children import crew, gone
from tests.jobs import AnyEngine
from tests.worker.stage import Stage, job_of, until


def known(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


async def nothing_left(folder: Path) -> None:
    pids = known(folder)
    assert pids, "no process told its number"
    await until(lambda: all(gone(pid) for pid in pids), what=f"the end of {pids}")


async def healthy_ones(stage: Stage, count: int = 30) -> list[str]:
    jobs = [job_of("healthy") for _ in range(count)]
    await stage.engine.arun(store.submit(jobs))
    return [job.id for job in jobs]


async def all_succeeded(stage: Stage, ids: list[str]) -> Counter[int]:
    """How many needed how many attempts."""
    attempts: Counter[int] = Counter()
    for job_id in ids:
        job = await stage.ended(job_id, within_s=60)
        assert (job.state, job.failures, job.crashes) == ("succeeded", 0, 0)
        attempts[job.attempt] += 1
    return attempts


REASONS = {
    "sigkill": "was killed by signal 9 (SIGKILL)",
    "sigsegv": "was killed by signal 11 (SIGSEGV)",
    "exit": "exited with code 3",
    "memory": "reached its memory limit of 419430400 bytes",
}


@pytest.mark.parametrize("kind", REASONS)
async def test_a_poisonous_job_spends_its_crash_budget_and_nobody_elses(
    engine: AnyEngine, config: Config, tmp_path: Path, kind: str
) -> None:
    async with crew(engine, config) as stage:
        neighbours = await healthy_ones(stage)
        given = {"kind": kind, "folder": str(tmp_path)}
        options = '{"base_s":0.01,"factor":1.0,"cap_s":1.0,"jitter":0.0}'
        job = await stage.ended(
            await stage.submit("poisonous", given, crashes_max=2, options=options), within_s=60
        )
        attempts = await all_succeeded(stage, neighbours)

    assert (job.state, job.attempt, job.crashes, job.failures) == ("failed", 2, 2, 0)
    assert job.error["code"] == "crashes_exhausted"
    assert f"crash 2 of 2: its child process {REASONS[kind]}" == job.error["message"]
    assert [event.kind for event in await engine.arun(store.events(job.id))] == ["crashed", "crashed"]
    assert set(attempts) == {1}
    assert len(known(tmp_path)) == 2
    await nothing_left(tmp_path)


@pytest.mark.parametrize("dies", [True, False])
async def test_a_grandchild_ends_with_the_child(lite: AnyEngine, tmp_path: Path, dies: bool) -> None:
    config = settings(lite, child_jobs_max=1)
    async with crew(lite, config) as stage:
        given = {"folder": str(tmp_path), "dies": dies}
        job = await stage.ended(await stage.submit("leaves_a_grandchild", given, crashes_max=1))
        await nothing_left(tmp_path)

    assert job.state == ("failed" if dies else "succeeded")
    assert len(known(tmp_path)) == 2


async def test_nothing_is_left_when_the_worker_stops(lite: AnyEngine, tmp_path: Path) -> None:
    async with crew(lite, settings(lite)) as stage:
        await stage.run("leaves_a_grandchild", {"folder": str(tmp_path), "dies": False})
        assert not any(gone(pid) for pid in known(tmp_path))
    await asyncio.wait_for(nothing_left(tmp_path), 5)


async def test_a_child_may_lose_its_output_but_not_its_connection(lite: AnyEngine, tmp_path: Path) -> None:
    """Closing what is printed to harms nobody; whoever closes everything is deaf, and ended when its time is over."""
    async with crew(lite, settings(lite)) as stage:
        silent = await stage.run("poisonous", {"kind": "stdout", "folder": str(tmp_path)})
        deaf = await stage.run(
            "poisonous",
            {"kind": "descriptors", "folder": str(tmp_path)},
            timeout_s=1.0,
            attempts_max=1,
            crashes_max=1,
        )
        await nothing_left(tmp_path)

    assert (silent.state, deaf.state) == ("succeeded", "failed")
    # Its event loop may notice that it is broken, or never wake up again.
    assert deaf.error["code"] in ("attempts_exhausted", "crashes_exhausted")
