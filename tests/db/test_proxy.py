"""A submit whose connection breaks at COMMIT: what the caller is told is true, and a repeat makes one job."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import psycopg
import pytest

from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Failure, Success
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import OutcomeUnknown, Unavailable
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.proxy import FaultProxy
from tests.kit.jobs import new_job, read, register, running

INSERT = "INSERT INTO"


@pytest.fixture
def through(tcp_server: PostgresServer, proxy: FaultProxy) -> Iterator[PostgresEngine]:
    url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
    engine = PostgresEngine(url, store.postgres_queries())
    engine.run(store.clock())  # connected, so that the cut hits the operation and no greeting
    yield engine
    engine.close()


@pytest.fixture
def direct(tcp_server: PostgresServer) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(tcp_server.conninfo("app", "app"), store.postgres_queries())
    yield engine
    with psycopg.connect(engine.conninfo, autocommit=True) as connection:
        connection.execute("TRUNCATE fencerow.jobs, fencerow.finished_jobs, fencerow.keys")
    engine.close()


def jobs(engine: PostgresEngine) -> list[str]:
    return [job.id for job in engine.run(looking.list_jobs())]


def test_nothing_waits_in_the_proxy_for_more_to_come(proxy: FaultProxy, through: PostgresEngine) -> None:
    """Nagle's rule would hold a small piece until the one before it is acknowledged, and be measured as ours."""
    ends = [end for link in proxy._open() for end in (link._client, link._server)]

    assert ends and all(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for end in ends)


def test_cut_before_the_statement_nothing_is_stored(
    proxy: FaultProxy, through: PostgresEngine, direct: PostgresEngine
) -> None:
    proxy.cut_before(INSERT)
    with pytest.raises(OutcomeUnknown):  # one statement is its own commit: nobody can tell how far it came
        through.run(store.submit([new_job()]))
    assert proxy.cuts == 1
    assert jobs(direct) == []


def test_a_lost_reply_is_an_unknown_outcome_and_a_resubmit_leaves_one_job(
    proxy: FaultProxy, through: PostgresEngine, direct: PostgresEngine
) -> None:
    job = new_job()
    proxy.cut_after_reply_to(INSERT)
    with pytest.raises(OutcomeUnknown) as told:
        through.run(store.submit([job]))
    assert told.value.repeat == "ask"
    assert jobs(direct) == [job.id], "the server had committed it"

    assert through.run(store.resubmit([job])) == []
    assert jobs(direct) == [job.id]


def test_a_resubmit_finds_the_job_that_ran_meanwhile(
    proxy: FaultProxy, through: PostgresEngine, direct: PostgresEngine
) -> None:
    proxy.cut_after_reply_to(INSERT)
    with pytest.raises(OutcomeUnknown):
        through.run(store.submit([job := new_job()]))
    (claimed,) = direct.run(
        store.claim(
            "mail", [Mark(0)], holder=(holder := register(direct)), names=["send"], limit=1, margin_s=1
        )
    )
    direct.run(store.succeed([Success(job.id, claimed.attempt, "1")], holder=holder))

    assert through.run(store.resubmit([job])) == []
    assert read(direct, job.id).state is State.SUCCEEDED


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_repeatable_unit_comes_through_a_cut_at_commit_by_itself(
    proxy: FaultProxy, through: PostgresEngine, direct: PostgresEngine, cut: str
) -> None:
    job = new_job()
    (proxy.cut_before if cut == "before" else proxy.cut_after_reply_to)("COMMIT")
    answer = through.run(store.resubmit([job]))
    assert proxy.cuts == 1
    assert answer == ([job.id] if cut == "before" else [])
    assert jobs(direct) == [job.id]


async def test_a_repeatable_unit_that_cannot_come_through_is_in_doubt(
    tcp_server: PostgresServer, direct: PostgresEngine
) -> None:
    """The second try stores nothing and says so; of the first nobody knows."""
    for is_async in (False, True):
        with FaultProxy(tcp_server.port) as proxy:
            url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
            away = PostgresEngine(url, store.postgres_queries())
            await away.arun(store.clock()) if is_async else away.run(store.clock())
            away._pools._connect_timeout_s = 0.3  # from here on none comes, so nobody needs the time
            proxy.refuse_new()
            proxy.cut_after_reply_to("COMMIT")
            again = store.resubmit([job := new_job()])
            with pytest.raises(OutcomeUnknown):
                await away.arun(again) if is_async else away.run(again)
            assert job.id in jobs(direct), "it was stored"
            with pytest.raises(Unavailable):
                await away.arun(again) if is_async else away.run(again)
            await away.aclose()


async def test_the_same_for_async_callers(
    proxy: FaultProxy, through: PostgresEngine, direct: PostgresEngine
) -> None:
    await through.arun(store.clock())
    proxy.cut_after_reply_to(INSERT)
    job = new_job()
    with pytest.raises(OutcomeUnknown):
        await through.arun(store.submit([job]))
    assert jobs(direct) == [job.id]
    proxy.cut_before("COMMIT")
    assert await through.arun(store.resubmit([job, other := new_job()])) == [other.id]
    assert jobs(direct) == [other.id, job.id]
    await through.aclose()


def test_a_unit_cut_inside_was_rolled_back_and_says_so(
    proxy: FaultProxy, through: PostgresEngine, direct: PostgresEngine
) -> None:
    job = running(direct, holder := register(direct))
    proxy.cut_before("DELETE FROM")  # archive, the second statement of fail
    with pytest.raises(Unavailable, match="nothing was stored"):
        through.run(store.fail([Failure(job.id, 1, "{}")], holder=holder))
    assert read(direct, job.id).state is State.RUNNING

    proxy.cut_before("COMMIT")
    with pytest.raises(OutcomeUnknown):
        through.run(store.fail([Failure(job.id, 1, "{}")], holder=holder))
    assert read(direct, job.id).state is State.RUNNING


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_session_of_user_code_tells_what_it_knows(
    proxy: FaultProxy, through: PostgresEngine, direct: PostgresEngine, cut: str
) -> None:
    job = new_job()
    (proxy.cut_before if cut == "before" else proxy.cut_after_reply_to)("COMMIT")
    with pytest.raises(OutcomeUnknown), through.session() as session:
        session.run(store.submit([job]))
    assert jobs(direct) == ([] if cut == "before" else [job.id])

    def torn() -> None:
        with through.session() as session:
            session.run(store.submit([new_job()]))
            proxy.cut_all()
            session.run(store.clock())

    with pytest.raises(Unavailable, match="rolled back"):
        torn()
    assert len(jobs(direct)) == (0 if cut == "before" else 1)
