"""A worker beyond a proxy that cuts its connection at one message: before the server hears it, or before the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import pytest

from fencerow.core.store import store
from fencerow.core.worker import keeper as keeper_module
from fencerow.core.worker.context import Job
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.errors import OutcomeUnknown
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.proxy import FaultProxy
from tests.core.worker.stage import Stage, kinds, quick, read, submit, until, worker_of, working

T = TypeVar("T")

REGISTER = "coalesce(former.wanted_version"

# A text that only this statement holds.
STATEMENTS = {
    "claim": "AS candidate\n            LIMIT",
    "succeed": "CAST('succeeded' AS text) AS state",
    "fail": "SET state = 'failed'",
    "requeue": "snoozes + outcome.snoozes",
    "renew": "SET renewed_at",
    "holdings": "cancel_requested_at IS NOT NULL, job.cancel_requested_by",
}


@pytest.fixture
def near(tcp_server: PostgresServer) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(tcp_server.conninfo("app", "app"), store.postgres_queries())
    yield engine
    engine.close()


async def ended(stage: Stage, near: PostgresEngine, job_id: str) -> None:
    await until(lambda: near.run(store.read([job_id]))[job_id].is_final)


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize(
    "verb", ["claim", "succeed", "fail", "fail at COMMIT", "requeue", "renew", "holdings"]
)
async def test_a_worker_settles_what_it_did_not_hear(
    tcp_server: PostgresServer, near: PostgresEngine, verb: str, cut: str
) -> None:
    ran: list[int] = []

    def work(job: Job) -> str:
        ran.append(job.attempt)
        if verb.startswith("fail") or (verb == "requeue" and job.attempt == 1):
            raise RuntimeError("as wanted")
        return "done"

    with FaultProxy(tcp_server.port) as proxy:
        url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
        engine = PostgresEngine(url, store.postgres_queries())
        async with working(engine, work, config=quick(lease_s=9.0)) as stage:
            holder = stage.worker.holder
            text = "COMMIT" if verb == "fail at COMMIT" else STATEMENTS[verb]
            (proxy.cut_before if cut == "before" else proxy.cut_after_reply_to)(text)
            job_id = await submit(near, "work", attempts_max=1 if verb.startswith("fail") else 5)
            await ended(stage, near, job_id)
            await until(lambda: proxy.cuts == 1, what=f"the cut at {verb}")
            await until(lambda: not stage.worker.running, what="everything confirmed")
            job = await read(near, job_id)
            assert stage.worker.holder == holder, "it lost its registration"
        await engine.aclose()

    lost_claim = verb == "claim" and cut == "after"
    assert job.state == ("failed" if verb.startswith("fail") else "succeeded")
    assert job.attempt == (2 if lost_claim or verb == "requeue" else 1)
    assert ran == ([2] if lost_claim else [1, 2] if verb == "requeue" else [1]), "an attempt ran twice"
    assert (job.failures, job.crashes) == (int(verb.startswith("fail") or verb == "requeue"), 0)
    assert (await kinds(near, job_id)).count("failed") <= 1


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_worker_whose_registration_is_not_answered_starts_all_the_same(
    tcp_server: PostgresServer, near: PostgresEngine, cut: str
) -> None:
    async def work() -> None: ...

    with FaultProxy(tcp_server.port) as proxy:
        url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
        engine = PostgresEngine(url, store.postgres_queries())
        (proxy.cut_before if cut == "before" else proxy.cut_after_reply_to)(REGISTER)
        async with working(engine, work, config=quick(lease_s=9.0)) as stage:
            assert proxy.cuts == 1
            assert (await stage.run("work")).state == "succeeded"
            (found,) = [each for each in near.run(store.list_workers()) if each.id == stage.worker.holder]
            assert found.state == "alive"
        await engine.aclose()


async def test_it_gives_up_when_no_answer_ever_comes(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_module, "RETRY_S", 0.0)
    tries: list[str] = []

    class Silent(PostgresEngine):
        def run(self, operation: Operation[T]) -> T:
            if operation.name == "register":
                tries.append(operation.name)
                raise OutcomeUnknown("no answer came", "as wanted", "")
            return super().run(operation)

        def keeper(self, *, patience_s: float = math.inf) -> PostgresEngine:
            return Silent(self.conninfo, self.queries)

    async def work() -> None: ...

    engine = Silent(pg.conninfo, pg.queries)
    with pytest.raises(OutcomeUnknown):
        await worker_of(engine, work).run()
    await engine.aclose()

    assert len(tries) == keeper_module.REGISTER_TRIES
