"""What the proxy breaks, seen from three drivers: what the client is told, and what the server did."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import psycopg
import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import DatabaseError
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.faults import CUTS, Dice, Fault, Phase, Plan
from fencerow_proof.network.link import Link
from fencerow_proof.network.proxy import FaultProxy
from tests.kit.jobs import new_job
from tests.kit.servers import CopiedServer

Run = Callable[[str], Awaitable[object]]
BROKEN = (psycopg.OperationalError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError)
# A reset is another thing than an orderly end only where no reply has begun.
ENDS = [(phase, False) for phase in CUTS] + [(Phase.BEFORE, True), (Phase.UNANSWERED, True)]
PROTOCOL = 3 << 16  # of the startup
DONE = {Phase.BEFORE: 0, Phase.UNANSWERED: 1, Phase.DURING: 1, Phase.AFTER: 1}


@pytest.fixture(scope="module")
def tcp_server() -> Iterator[PostgresServer]:
    with CopiedServer(fast=True, tcp=True) as running:
        url = running.create_role_and_schema(role="app", database="app")
        engine = PostgresEngine(url, store.postgres_queries())
        store.migrate(engine)
        engine.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE fencerow.note (n integer)")
        yield running


@pytest.fixture
def url(tcp_server: PostgresServer, proxy: FaultProxy) -> str:
    return f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"


@pytest.fixture
def rows(tcp_server: PostgresServer) -> Iterator[Callable[[], int]]:
    """How many rows the server has, asked past the proxy."""
    with psycopg.connect(tcp_server.conninfo("app", "app"), autocommit=True) as direct:
        direct.execute("TRUNCATE fencerow.note")

        def count() -> int:
            found = direct.execute("SELECT count(*) FROM fencerow.note").fetchone()
            return 0 if found is None else int(found[0])

        yield count


@asynccontextmanager
async def psycopg_sync(url: str) -> AsyncIterator[Run]:
    connection = psycopg.connect(url, autocommit=True)

    async def run(text: str) -> object:
        return await asyncio.to_thread(connection.execute, text.encode())

    try:
        yield run
    finally:
        connection.close()


@asynccontextmanager
async def psycopg_async(url: str) -> AsyncIterator[Run]:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)

    async def run(text: str) -> object:
        return await connection.execute(text.encode())

    try:
        yield run
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_prepared(url: str) -> AsyncIterator[Run]:
    """Statements are prepared under names and executed by them: the text goes over the wire once."""
    connection = await asyncpg.connect(url, ssl=False)

    async def run(text: str) -> object:
        return await connection.fetch(text)

    try:
        yield run
    finally:
        connection.terminate()


DRIVERS = [psycopg_sync, psycopg_async, asyncpg_prepared]
INSERT = "INSERT INTO fencerow.note VALUES (1) RETURNING n"


@pytest.mark.parametrize(("phase", "reset"), ENDS)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.__name__)
async def test_a_cut_at_a_statement_in_autocommit(
    proxy: FaultProxy,
    url: str,
    rows: Callable[[], int],
    driver: Callable[..., object],
    phase: Phase,
    reset: bool,
) -> None:
    async with driver(url) as run:  # type: ignore[attr-defined]
        await run("SELECT 1")
        proxy.inject(Fault(phase, "INSERT", reset=reset))
        if phase is Phase.AFTER:
            await run(INSERT)
            with pytest.raises(BROKEN):
                await run("SELECT 1")
        else:
            with pytest.raises(BROKEN):
                await run(INSERT)
    assert proxy.count() == {phase: 1}
    assert "INSERT" in proxy.strikes[0].statement
    assert rows() == DONE[phase]


@pytest.mark.parametrize("phase", CUTS)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.__name__)
async def test_a_cut_at_commit(
    proxy: FaultProxy, url: str, rows: Callable[[], int], driver: Callable[..., object], phase: Phase
) -> None:
    proxy.inject(Fault(phase))
    async with driver(url) as run:  # type: ignore[attr-defined]
        await run("BEGIN")
        await run(INSERT)
        with suppress(*BROKEN):
            await run("COMMIT")
            assert phase is Phase.AFTER, "the answer did not come through"
    assert proxy.count() == {phase: 1}
    assert rows() == DONE[phase]


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.__name__)
async def test_delay_and_trickle_bring_the_whole_answer_late(
    proxy: FaultProxy, url: str, driver: Callable[..., object]
) -> None:
    async with driver(url) as run:  # type: ignore[attr-defined]
        await run(INSERT)
        for fault in (
            Fault(Phase.DELAY, "INSERT", seconds=0.3),
            Fault(Phase.TRICKLE, "INSERT", seconds=0.005),
        ):
            proxy.inject(fault)
            began = time.monotonic()
            await run(INSERT)
            assert time.monotonic() - began >= 0.1
    assert proxy.count() == {Phase.DELAY: 1, Phase.TRICKLE: 1}


@pytest.mark.parametrize("phase", [Phase.DEAF, Phase.MUTE])
@pytest.mark.parametrize("driver", [psycopg_async, asyncpg_prepared], ids=lambda driver: driver.__name__)
async def test_a_half_open_connection_answers_nobody(
    proxy: FaultProxy, url: str, rows: Callable[[], int], driver: Callable[..., object], phase: Phase
) -> None:
    async with driver(url) as run:  # type: ignore[attr-defined]
        await run("SELECT 1")
        proxy.inject(Fault(phase, "INSERT"))
        waiting = asyncio.ensure_future(run(INSERT))
        stored = 1 if phase is Phase.MUTE else 0
        while proxy.count() != {phase: 1} or rows() != stored:
            await asyncio.sleep(0.01)
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done, "somebody answered"
        assert rows() == stored
        proxy.cut_all()
        with pytest.raises(BROKEN):
            await waiting


async def test_a_black_hole_accepts_and_never_answers(proxy: FaultProxy, url: str) -> None:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    proxy.black_hole()
    open_one = asyncio.ensure_future(connection.execute("SELECT 1"))
    new_one = asyncio.ensure_future(psycopg.AsyncConnection.connect(url))
    done, _ = await asyncio.wait([open_one, new_one], timeout=0.3)
    assert not done, "somebody answered"
    proxy.heal()
    for waiting in (open_one, new_one):
        with pytest.raises(psycopg.OperationalError):
            await waiting
    await connection.close()
    async with await psycopg.AsyncConnection.connect(url) as again:
        await again.execute("SELECT 1")


@pytest.mark.parametrize("phase", CUTS)
async def test_in_a_pipeline_the_fault_meets_its_own_statement(
    proxy: FaultProxy, url: str, rows: Callable[[], int], phase: Phase
) -> None:
    """Three statements under three syncs are on their way at once; the second is hit."""
    proxy.inject(Fault(phase, "note VALUES (2)"))
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    with suppress(*BROKEN):
        async with connection.pipeline() as pipeline:
            for number in (1, 2, 3):
                await connection.execute(f"INSERT INTO fencerow.note VALUES ({number})".encode())
                await pipeline.sync()
    with suppress(*BROKEN):
        await connection.close()
    assert proxy.count() == {phase: 1}
    assert "VALUES (2)" in proxy.strikes[0].statement
    assert rows() >= 1 + DONE[phase] if phase is not Phase.BEFORE else rows() <= 1


async def test_the_nth_statement_is_hit_and_only_what_struck_counts(
    proxy: FaultProxy, url: str, rows: Callable[[], int]
) -> None:
    never = Fault(Phase.AFTER, "no such text")
    proxy.inject(Fault(Phase.BEFORE, "INSERT", nth=3), never)
    async with psycopg_async(url) as run:
        await run(INSERT)
        await run(INSERT)
        with pytest.raises(BROKEN):
            await run(INSERT)
    assert rows() == 2
    assert proxy.cuts == 1
    assert proxy.disarm() == [never]


@pytest.mark.parametrize("phase", [Phase.UNANSWERED, Phase.DURING, Phase.AFTER])
def test_what_comes_behind_a_cut_meets_no_fault(phase: Phase) -> None:
    """All that the client ever sends is at the proxy before the first reply is there, which would bring the cut."""
    behind = Fault(Phase.BEFORE, "SELECT 2")
    plan = Plan()
    plan.arm([Fault(phase, "SELECT 1"), behind])
    client, clients_end = socket.socketpair()
    server, servers_end = socket.socketpair()
    client.sendall(struct.pack("!II", 8, PROTOCOL) + query("SELECT 1") + query("SELECT 2"))
    client.shutdown(socket.SHUT_WR)

    Link(plan, clients_end, servers_end, lambda _: None).pass_queries()

    client.close()
    server.close()
    assert plan.disarm() == [behind]


def query(text: str) -> bytes:
    body = text.encode() + b"\0"
    return b"Q" + struct.pack("!I", len(body) + 4) + body


async def test_the_same_seed_breaks_the_same_statements(tcp_server: PostgresServer) -> None:
    """Through one connection after another the throws meet the same statements."""
    found = []
    for _ in range(2):
        with FaultProxy(tcp_server.port) as proxy:
            proxy.throw(Dice(7, 0.3, texts=["INSERT"]))
            url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
            left = 30
            while left:
                connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
                with suppress(*BROKEN):
                    while left:
                        left -= 1
                        await connection.execute(f"INSERT INTO fencerow.note VALUES ({left})".encode())
                await connection.close()
            found.append([(strike.fault, strike.statement) for strike in proxy.strikes])
    assert found[0] == found[1]
    assert len(found[0]) > 3
    assert len({fault.phase for fault, _ in found[0]}) > 1


@pytest.mark.parametrize(("phase", "reset"), ENDS)
def test_the_engine_never_calls_stored_what_was_not(
    proxy: FaultProxy, url: str, tcp_server: PostgresServer, phase: Phase, reset: bool
) -> None:
    """A single statement is its own commit: an answer that came is true, and one that did not is no answer."""
    engine = PostgresEngine(url, store.postgres_queries())
    engine.run(store.clock())
    direct = PostgresEngine(tcp_server.conninfo("app", "app"), store.postgres_queries())
    proxy.inject(Fault(phase, "INSERT INTO", reset=reset))
    answered, job = True, new_job()
    try:
        engine.run(store.submit([job]))
    except DatabaseError:
        answered = False
    stored = job.id in {each.id for each in direct.run(looking.list_jobs())}
    assert proxy.count() == {phase: 1}
    assert stored == bool(DONE[phase])
    assert answered == (phase is Phase.AFTER)
    engine.close()
    direct.close()
