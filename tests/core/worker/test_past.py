"""A worker remembers what was confirmed to it, and sees at the next renewal that the database has forgotten it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable

import pytest

from fencerow.core.model.loss import Loss
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.core.worker.attempt import Attempt
from fencerow.core.worker.context import Job
from fencerow.core.worker.lease import Failover
from fencerow.core.worker.life import Life
from fencerow.core.worker.pool import Pool
from fencerow.db.postgres import PostgresEngine
from fencerow.db.steady import steady
from fencerow.doctor.losses import losses_of
from fencerow.errors import DatabaseError
from tests.core.worker.faulty import Faulty
from tests.core.worker.stage import quick, read, until, working
from tests.kit.jobs import register, running

GO_BACK = "UPDATE fencerow.workers SET renewed_at = renewed_at - INTERVAL '1 second'"


def run(engine: PostgresEngine, text: str) -> None:
    with engine.session() as session:
        session.connection.execute(text)


def renewed(engine: PostgresEngine, past: Failover, holder: str) -> None:
    sent = steady()
    found = engine.run(store.renew(holder=holder))
    assert found is not None
    past.renewed(sent, found.at_us)


def begun(engine: PostgresEngine) -> tuple[Failover, str]:
    past = Failover(engine)
    past.look(None)
    holder = register(engine)
    past.registered()
    renewed(engine, past, holder)
    return past, holder


def test_a_database_that_forgot_nothing_is_no_news(pg: PostgresEngine) -> None:
    past, holder = begun(pg)
    for _ in range(3):
        assert not past.look(holder)
        renewed(pg, past, holder)
    assert losses_of(past.described()) == []
    assert "/" in str(past.described()["server"])


def test_a_renewal_that_is_missing_is_told_once(pg: PostgresEngine) -> None:
    past, holder = begun(pg)
    run(pg, GO_BACK)
    assert past.look(holder)
    renewed(pg, past, holder)
    assert not past.look(holder)
    (loss,) = losses_of(past.described())
    assert loss.kept_until_us is not None and loss.confirmed_until_us is not None
    assert loss.confirmed_until_us - loss.kept_until_us == 1_000_000


def test_a_registration_that_is_missing(pg: PostgresEngine) -> None:
    past, holder = begun(pg)
    run(pg, "DELETE FROM fencerow.workers")
    assert past.look(holder)
    (loss,) = losses_of(past.described())
    assert loss.kept_until_us is None


@pytest.mark.parametrize("moved", [True, False])
def test_an_outcome_counts_only_after_a_failover(pg: PostgresEngine, moved: bool) -> None:
    """Without one, an operator has deleted the job."""
    past, holder = begun(pg)
    job = running(pg, holder)
    past.confirmed(job.id, job.attempt)
    if moved:
        past._server = "another/1"
    assert past.look(holder) is moved
    assert len(losses_of(past.described())) == (1 if moved else 0)


def test_a_provider_that_tells_no_server_is_asked_seldom(pg: PostgresEngine) -> None:
    faulty = Faulty(pg)
    faulty.refuse("server_identity", DatabaseError("this role may not do that", "refused", "-"))
    past = Failover(faulty)
    holder = register(pg)
    past.registered()
    renewed(pg, past, holder)
    for _ in range(3):
        assert not past.look(holder)
    run(pg, GO_BACK)
    assert past.look(holder), "the renewals tell by themselves"
    assert past.described()["server"] is None


BRING_BACK = """
    DO $$
    DECLARE given text := (  -- the lane is computed
        SELECT string_agg(attname, ', ') FROM pg_attribute
        WHERE attrelid = CAST('fencerow.jobs' AS regclass) AND attnum > 0 AND attgenerated = '' AND NOT attisdropped);
    BEGIN
        EXECUTE format('WITH back AS (DELETE FROM fencerow.finished_jobs RETURNING *)
                        INSERT INTO fencerow.jobs (%1$s) SELECT %1$s FROM back', given);
    END $$
"""
FORGET = "UPDATE fencerow.jobs SET state = 'queued', holder = NULL, attempt = 0, claimed_at = NULL, deadline_at = NULL"


def losses_told(pg: PostgresEngine) -> list[Loss]:
    return [loss for each in pg.run(store.list_workers()) for loss in losses_of(each.info)]


async def claimed_again(pg: PostgresEngine, caplog: pytest.LogCaptureFixture) -> tuple[list[int], str]:
    """A claim is forgotten while its job runs, and the same worker claims it again: the same fence."""
    runs: list[int] = []
    go = asyncio.Event()

    async def send(job: Job) -> str:
        runs.append(job.attempt)
        await go.wait()
        return f"run {len(runs)}"

    async with working(pg, send, config=quick()) as stage:
        job_id = await stage.submit("send")
        await until(lambda: len(runs) == 1)
        await asyncio.to_thread(run, pg, FORGET)
        await until(lambda: len(runs) == 2 or "claimed twice" in caplog.text, what="it is claimed again")
        go.set()
        job = await stage.ended(job_id)
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
        if "claimed twice" in caplog.text:
            await until(lambda: len(losses_told(pg)) == 1, what="the worker's row tells of it")
        told = losses_told(pg)
    return runs, f"{len(told)} losses told"


async def test_a_job_that_this_worker_runs_and_claims_again_runs_once(
    pg: PostgresEngine, caplog: pytest.LogCaptureFixture
) -> None:
    assert await claimed_again(pg, caplog) == ([1], "1 losses told")


async def test_without_the_look_two_runs_would_share_one_fence(
    pg: PostgresEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(life: Life, pool: Pool, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            life._roster.held[attempt.key] = attempt
            pool.put(attempt)

    monkeypatch.setattr(Life, "claimed", put)
    runs, _ = await claimed_again(pg, caplog)
    assert runs == [1, 1]


async def test_a_run_that_was_given_up_and_goes_on_keeps_its_fence_to_itself(
    pg: PostgresEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """Its job is claimed again under the same fence, and let go at once: the next attempt has another number."""
    runs: list[int] = []
    over = threading.Event()

    def hang(job: Job) -> None:
        runs.append(job.attempt)
        while not over.is_set() and len(runs) == 1:
            try:
                over.wait(60)
            except BaseException:  # noqa: S112 (it ignores its end)
                continue

    async with working(pg, hang, config=quick(cancel_kill_s=0.1)) as stage:
        job_id = await stage.submit("hang", timeout_s=0.2, attempts_max=1)
        assert (await stage.ended(job_id)).state == State.FAILED
        await asyncio.to_thread(run, pg, f"{BRING_BACK}; {FORGET}")
        try:
            await stage.heard.wait(Fact.SUCCEEDED)
        finally:
            over.set()
        attempts = (await read(pg, job_id)).attempt
    assert "claimed twice" in caplog.text
    assert runs == [1, attempts] and attempts > 1
