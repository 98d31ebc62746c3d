"""A standby takes over that never had the last confirmed commits; and a backup is put in the place of what came later.

It is noticed and said. What then holds: those who were at work before can change nothing that is run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencerow import Config
from fencerow.core.finding import Finding
from fencerow.core.model.job import Claimed
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Requeue, Stop, Success
from fencerow.core.worker.context import Job
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.doctor.examine import examine
from fencerow.errors import LeaseLost
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.standby import restore_files, save_files
from tests.conftest import postgres_engine
from tests.core.worker.stage import quick, until, working
from tests.kit.jobs import claim, new_job, read, register
from tests.whole.failover.conftest import Pair

pytestmark = pytest.mark.timed

LOST = "has lost writes that it had confirmed to this worker"


def findings(url: str) -> dict[str, Finding]:
    return {each.name: each for each in examine(Config(url=url))}


async def test_commits_that_a_promoted_standby_never_had_are_noticed_and_said(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    engine = PostgresEngine(pair.url, store.postgres_queries(), connect_timeout_s=2.0)
    await asyncio.to_thread(store.migrate, engine)
    runs: list[str] = []

    async def send(job: Job) -> str:
        runs.append(job.id)
        return job.id

    async with working(engine, send, config=quick()) as stage:
        kept = await stage.run("send")
        await asyncio.to_thread(pair.part)
        lost = await stage.run("send")  # submitted, claimed, run and confirmed: by the primary alone
        assert lost.state == "succeeded"
        before = len(stage.heard.all("renewed"))
        await stage.heard.wait("renewed", before + 2)
        await asyncio.to_thread(pair.fail_over)
        await until(lambda: LOST in caplog.text, 10, "the worker notices")
        again = await stage.run("send")  # and goes on
        told = await asyncio.to_thread(findings, pair.url)
        found = engine.run(store.read([kept.id, lost.id, again.id]))
    await engine.aclose()

    assert set(found) == {kept.id, again.id}, "what was confirmed meanwhile is gone"
    assert told["lost commits"].level == "fail"
    assert "docs/postgresql.md" in str(told["lost commits"].fix)


@pytest.mark.prove
async def test_an_outcome_confirmed_after_the_last_renewal_is_missed_too(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Seldom renewals: the only trace of the loss is the job that this worker has ended."""
    engine = PostgresEngine(pair.url, store.postgres_queries(), connect_timeout_s=2.0)
    await asyncio.to_thread(store.migrate, engine)
    gate = asyncio.Event()
    runs: list[int] = []

    async def send(job: Job) -> str:
        runs.append(job.attempt)
        await gate.wait()
        return job.id

    async with working(engine, send, config=quick(lease_s=30.0, renew_s=10.0)) as stage:
        job_id = await stage.submit("send")
        await until(lambda: bool(runs))
        stage.worker._parts.lease.renew_now()
        await stage.heard.wait("renewed")
        await asyncio.to_thread(pair.part)  # its claim is on the standby, its end is not
        gate.set()
        await stage.heard.wait("succeeded")
        await asyncio.to_thread(pair.fail_over)
        stage.worker._parts.lease.renew_now()
        await until(lambda: LOST in caplog.text, 15, "the worker notices")
    await engine.aclose()
    found = postgres_engine(pair.url)
    # It runs again: by then its holder has signed off, and its end is not there.
    assert read(found, job_id).state == "running"
    found.close()


@pytest.fixture
def own() -> Iterator[PostgresServer]:
    with PostgresServer(fast=True) as running:
        yield running


def writes_of(old: Claimed, holder: str) -> dict[str, Operation[Any]]:
    """Everything that a worker may write for a job it runs."""
    fence: dict[str, Any] = {"holder": holder, "attempt": old.attempt}
    return {
        "succeed": store.succeed([Success(old.id, old.attempt, '"zombie"')], holder=holder),
        "fail": store.fail([Failure(old.id, old.attempt, '{"type":"zombie"}')], holder=holder),
        "stop": store.stop([Stop(old.id, old.attempt, '{"type":"zombie"}')], holder=holder),
        "requeue": store.requeue([Requeue(id=old.id, attempt=old.attempt, kind="released")], holder=holder),
        "progress": store.progress(old.id, **fence, percent=1.0, note="zombie"),
        "log": store.log(old.id, **fence, level="INFO", message="zombie"),
        "renew": store.renew(holder=holder),
        "retire": store.retire(holder=holder),
    }


def restored(own: PostgresServer, folder: Path) -> tuple[PostgresEngine, Claimed, str, Claimed, str]:
    """A job that was claimed, forgotten by a restore, and claimed anew under the same attempt by somebody else."""
    engine = PostgresEngine(own.create_role_and_schema(), store.postgres_queries())
    store.migrate(engine)
    engine.run(store.submit([new_job()]))
    engine.close()
    own.stop()
    save_files(own, folder / "backup")
    own.start()
    zombie = register(engine)
    (old,) = claim(engine, zombie)
    engine.close()
    own.stop()
    restore_files(own, folder / "backup")
    own.start()
    holder = register(engine)
    (new,) = claim(engine, holder)
    assert (new.id, new.attempt) == (old.id, old.attempt), "the number alone repeats"
    assert holder != zombie
    return engine, old, zombie, new, holder


def test_zombies_of_before_a_restore_can_change_nothing(own: PostgresServer, tmp_path: Path) -> None:
    engine, old, zombie, new, holder = restored(own, tmp_path)
    before = read(engine, new.id)
    for name, operation in writes_of(old, zombie).items():
        try:
            assert not engine.run(operation), f"{name} of a zombie was taken"
        except LeaseLost:
            pass
        assert read(engine, new.id) == before, name
    assert engine.run(looking.logs(new.id)) == []
    (moved,) = engine.run(store.succeed([Success(new.id, new.attempt, '"true"')], holder=holder))
    assert moved.id == new.id
    engine.close()


@pytest.mark.prove
def test_the_attempt_s_number_alone_would_let_them(own: PostgresServer, tmp_path: Path) -> None:
    engine, old, zombie, new, _ = restored(own, tmp_path)
    guard = "AND job.holder = CAST(:holder AS uuid)"
    text = engine.queries["succeed"].statements[0]
    assert guard in text, text
    engine.queries = engine.queries.altered("succeed", guard, "AND CAST(:holder AS uuid) IS NOT NULL")
    (moved,) = engine.run(store.succeed([Success(old.id, old.attempt, '"zombie"')], holder=zombie))
    assert moved.id == new.id
    engine.close()


@pytest.mark.prove
async def test_a_worker_that_outlives_a_restore_notices_it_and_goes_on(
    own: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = own.create_role_and_schema()
    engine = PostgresEngine(url, store.postgres_queries(), connect_timeout_s=2.0)
    store.migrate(engine)

    async def send(job: Job) -> str:
        return job.id

    await engine.aclose()
    await asyncio.to_thread(own.stop)
    save_files(own, tmp_path / "backup")
    await asyncio.to_thread(own.start)
    async with working(engine, send, config=quick()) as stage:
        first = stage.worker.holder
        await stage.run("send")
        await asyncio.to_thread(own.stop, "immediate")
        restore_files(own, tmp_path / "backup")
        await asyncio.to_thread(own.start)
        await until(lambda: LOST in caplog.text, 10, "the worker notices")
        await until(lambda: stage.worker.holder not in (None, first), 10, "it registers anew")
        await stage.run("send")
        assert (await asyncio.to_thread(findings, url))["lost commits"].level == "fail"
    await engine.aclose()
