"""A person takes back what a worker runs: one winner for each job, and the worker's late outcome is refused."""

from __future__ import annotations

import asyncio

from fencerow.client import Client
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.operators.workers import taking_back
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.core.worker.stage import Stage, kinds, read, working
from tests.kit import jobs

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine


def running(engine: AnyEngine, count: int = 2) -> tuple[str, list[str]]:
    """A worker that renews its lease and never ends its jobs."""
    ids = jobs.submit(engine, *(jobs.new_job() for _ in range(count)))
    holder = jobs.register(engine)
    assert len(jobs.claim(engine, holder, limit=count)) == count
    return holder, ids


def test_its_jobs_are_queued_again_and_its_outcome_is_refused(cli: Cli, url: str, engine: AnyEngine) -> None:
    holder, ids = running(engine)
    engine.run(store.cancel(ids[1], actor="ada"))

    done = cli("workers", "reclaim", holder, "--json")

    assert done.code == 0
    assert done.json["ended"] is True
    assert {each["id"]: each["state"] for each in done.json["jobs"]} == {
        ids[0]: "queued",
        ids[1]: "cancelled",
    }
    assert engine.run(store.succeed([store.Success(ids[0], 1, '"late"')], holder=holder)) == []
    assert jobs.read(engine, ids[0]).state == "queued"
    assert engine.run(store.renew(holder=holder)) is None
    second = jobs.register(engine)
    suspect = engine.run(store.claim_suspect("mail", holder=second, names=["send"], margin_s=10.0))
    assert [(each.id, each.attempt) for each in suspect] == [(ids[0], 2)]


def test_the_timeline_says_who_took_it(cli: Cli, url: str, engine: AnyEngine) -> None:
    holder, (job_id,) = running(engine, 1)

    said = cli("workers", "reclaim", holder).out

    assert "its registration is over; 1 job taken back" in said
    assert f"{job_id}  queued again, attempt 1 is over" in said
    (note,) = [each for each in Client(engine).timeline(job_id) if each.kind == "reclaimed"]
    assert note.actor is not None
    again = cli("workers", "reclaim", holder).out
    assert "its registration was over already; 0 jobs taken back" in again
    assert cli("workers", "reclaim", "nobody").code != 0


def test_of_two_who_do_it_each_job_has_one(engine: AnyEngine) -> None:
    """Both have seen the worker alive. The second ends nothing and takes nothing."""
    holder, ids = running(engine, 3)
    client = Client(engine, actor="ada")
    worker = client.workers.inspect(holder).worker

    first = client.run(taking_back(worker, "ada"))
    second = client.run(taking_back(worker, "bob"))

    assert (first.ended, sorted(job.id for job in first.jobs)) == (True, sorted(ids))
    assert (second.ended, second.jobs) == (False, [])


async def test_a_process_that_lives_ends_its_handler_and_goes_on(engine: AnyEngine) -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    async def slow() -> str:
        runs.append(1)
        if len(runs) > 1:
            return "second"
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "first"

    async with working(engine, slow) as stage:
        job_id = await stage.submit("slow")
        await started.wait()
        before = await _taken_back(stage)
        await ended.wait()
        job = await stage.ended(job_id)

    assert stage.worker.holder != before
    assert (job.result, job.attempt, job.failures, job.crashes) == ("second", 2, 0, 0)
    assert "reclaimed" in await kinds(engine, job_id)
    assert (await read(engine, job_id)).state == "succeeded"


async def _taken_back(stage: Stage) -> str:
    holder = stage.worker.holder
    assert holder is not None
    done = await Client(stage.engine).workers.areclaim(holder)
    assert done.ended
    return holder
