"""Jobs that take their process down: they end failed with the reason, everybody else succeeds, and nothing is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from fencerow import Config
from fencerow.core.store import store
from tests.core.worker.stage import Stage, job_of, kinds, until
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S
from tests.processes.conftest import settings
from tests.processes.test_children import crew, gone


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
        job = await stage.ended(job_id, within_s=PATIENCE_S)
        assert (job.state, job.failures, job.crashes) == ("succeeded", 0, 0)
        attempts[job.attempt] += 1
    return attempts


REASONS = {
    "sigkill": "was killed by signal 9 (SIGKILL)",
    "sigsegv": "was killed by signal 11 (SIGSEGV)",
    "stack": "was killed by signal 11 (SIGSEGV)",
    "abort": "was killed by signal 6 (SIGABRT)",
    "exit": "exited with code 3",
    "memory": "reached its memory limit of 419430400 bytes",
}


FEW = {"sigkill", "exit", "memory"}  # a signal, an end of its own, a limit


@pytest.mark.parametrize(
    "which", [FEW, pytest.param({*REASONS, "async"}, marks=pytest.mark.prove)], ids=["few", "all"]
)
async def test_poisonous_jobs_spend_their_crash_budgets_and_nobody_elses(
    engine: AnyEngine, config: Config, tmp_path: Path, which: set[str]
) -> None:
    """All of them at once, plain ones and an async one, among healthy jobs of the same worker."""
    options = '{"base_s":0.01,"factor":1.0,"cap_s":1.0,"jitter":0.0}'
    budgets = {kind: 2 if kind == "sigkill" else 1 for kind in (*REASONS, "async") if kind in which}
    async with crew(engine, config, queues={"mail": 10}) as stage:
        neighbours = await healthy_ones(stage, 30)
        poison = {
            kind: await stage.submit(
                "apoisonous" if kind == "async" else "poisonous",
                {"kind": "sigkill" if kind == "async" else kind, "folder": str(tmp_path)},
                crashes_max=budget,
                options=options,
            )
            for kind, budget in budgets.items()
        }
        neighbours += await healthy_ones(stage, 30)
        ended = {kind: await stage.ended(job_id, within_s=PATIENCE_S) for kind, job_id in poison.items()}
        attempts = await all_succeeded(stage, neighbours)

    for kind, job in ended.items():
        reason, crashes = REASONS.get(kind, REASONS["sigkill"]), budgets[kind]
        assert (job.state, job.crashes, job.failures) == ("failed", crashes, 0)
        assert job.error["code"] == "crashes_exhausted"
        assert job.error["message"] == f"crash {crashes} of {crashes}: its child process {reason}"
        assert (await kinds(engine, job.id)).count("crashed") == crashes
    # A healthy job may have waited for a slot until it was handed back.
    assert sum(attempts.values()) == 60 and set(attempts) <= {1, 2}
    assert len(known(tmp_path)) == sum(budgets.values())
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
    await asyncio.wait_for(nothing_left(tmp_path), PATIENCE_S)


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
