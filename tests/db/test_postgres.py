"""PostgreSQL: what its errors become, how the engine comes back from lost connections, contention, loops, forks."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db import forks
from fencerow.db.adapters.lent_postgres import is_lost
from fencerow.db.faults import LOST_STATES, connection_lost
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation, Steps, execute, operation
from fencerow.errors import (
    Busy,
    DatabaseError,
    OutcomeUnknown,
    ReadOnly,
    RowRefused,
    SchemaMissing,
    SchemaTooOld,
    StorageFull,
    Unavailable,
)
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer
from tests.conftest import ROLE, postgres_engine
from tests.kit.jobs import claim, new_job, register, submit
from tests.kit.pace import PATIENCE_S, slower
from tests.kit.servers import CopiedServer

# A pooler says by itself for whom a session works.
# The isolation level is the transaction's own, said by its BEGIN, and gone with it.
OWN = "('application_name', 'transaction_isolation')"
CHANGED_SETTINGS = f"SELECT name FROM pg_settings WHERE source = 'session' AND name NOT IN {OWN}"


def database(engine: PostgresEngine) -> str:
    with psycopg.connect(engine.conninfo) as connection:
        return connection.info.dbname


def engine_on(url: str, **settings: Any) -> PostgresEngine:
    return PostgresEngine(url, store.postgres_queries(), **settings)


# --- what an operator can do something about -----------------------------------------------------------


def test_a_server_that_is_away(server: PostgresServer) -> None:
    engine = engine_on(f"postgresql://app@/x?host={server.directory}&port=1", connect_timeout_s=0.3)
    started = time.monotonic()
    with pytest.raises(Unavailable, match="no connection"):
        engine.run(store.clock())
    assert time.monotonic() - started < 20  # a pool by itself waits for 30
    engine.close()


async def test_a_server_that_is_away_for_async_callers(server: PostgresServer) -> None:
    engine = engine_on(f"postgresql://app@/x?host={server.directory}&port=1", connect_timeout_s=0.3)
    with pytest.raises(Unavailable):
        await engine.arun(store.clock())
    await engine.aclose()


def test_a_wrong_password_is_no_traceback_and_not_shown() -> None:
    with CopiedServer(fast=True, tcp=True) as guarded:
        url = guarded.conninfo(tcp=True).replace(guarded.password, "hunter2")
        engine = engine_on(url, connect_timeout_s=0.5)
        with pytest.raises(Unavailable) as told:
            engine.run(store.clock())
        assert "hunter2" not in str(told.value)
        engine.close()


def test_a_read_only_database(pg: PostgresEngine, server: PostgresServer) -> None:
    """As a standby answers, or a primary that was told to."""
    with server.connect() as connection:
        connection.execute(f"ALTER DATABASE {database(pg)} SET default_transaction_read_only = on".encode())
    server.kill_backends(database(pg))  # a pooler's would go on as they are
    with pytest.raises(ReadOnly, match="read-only"):
        pg.run(store.submit([new_job()]))
    assert pg.run(looking.list_jobs()) == []


def test_tables_that_are_not_there(empty_postgres_url: str) -> None:
    engine = engine_on(empty_postgres_url)
    for ask in (
        lambda: engine.run(store.submit([new_job()])),
        lambda: engine.run(looking.counts()),
        lambda: engine.run(store.resubmit([new_job()])),
    ):
        with pytest.raises((SchemaMissing, SchemaTooOld), match="fencerow migrate"):
            ask()
    engine.close()


def test_a_role_without_privileges(pg: PostgresEngine, server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN")
    stranger = engine_on(server.conninfo(database(pg), "stranger"))
    for look in (stranger.run, lambda asked: asyncio.run(stranger.arun(asked))):
        with pytest.raises(DatabaseError, match="the role stranger may not do that") as refused:
            look(looking.counts())
        assert "permission denied" in refused.value.why
    stranger.close()
    with server.connect() as connection:
        connection.execute("DROP ROLE stranger")


@operation()
def plain(name: str) -> Steps[list[tuple[object, ...]]]:
    return (yield from execute(name))


def with_text(engine: PostgresEngine, text: str) -> PostgresEngine:
    """An engine whose clock query says something else."""
    other = engine_on(engine.conninfo)
    other.queries = engine.queries.altered("clock", engine.queries["clock"].statements[0], text)
    return other


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DO $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$", StorageFull),
        ("DO $$ BEGIN RAISE EXCEPTION 'many' USING ERRCODE = '53300'; END $$", Unavailable),
        ("DO $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = '57014'; END $$", RowRefused),
        ("DO $$ BEGIN PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(60); END $$", Unavailable),
        ("DO $$ BEGIN RAISE EXCEPTION 'column' USING ERRCODE = '42703'; END $$", SchemaTooOld),
        (
            "DO $$ BEGIN RAISE EXCEPTION 'unique' USING ERRCODE = '23505'; END $$",
            psycopg.errors.UniqueViolation,
        ),
        ("SELECT 1 / 0", psycopg.errors.DivisionByZero),
    ],
)
async def test_each_error_becomes_what_a_caller_can_use(
    pg: PostgresEngine, text: str, kind: type[Exception]
) -> None:
    broken = with_text(pg, text)
    with pytest.raises(kind):
        broken.run(plain("clock"))
    with pytest.raises(kind):
        await broken.arun(plain("clock"))
    await broken.aclose()


@operation()
def without_queue() -> Steps[None]:
    yield from execute("submit", count=1, jobs=f'[{{"queue":null,"jobs":[["{new_id()}",2,"{{}}"]]}}]')


def test_integrity_errors_reach_the_caller_unchanged(pg: PostgresEngine) -> None:
    with pytest.raises(psycopg.errors.NotNullViolation):
        pg.run(without_queue())
    submit(pg)


async def test_a_callers_own_missing_table_is_not_taken_for_ours(
    pg: PostgresEngine, empty_postgres_url: str
) -> None:
    def ask() -> None:
        with pg.session() as session:
            session.connection.execute("SELECT * FROM orders")

    async def ask_async() -> None:
        async with pg.asession() as session:
            await session.connection.execute("SELECT nothing(1)")

    def ask_ours() -> None:
        with empty.session() as session:
            session.run(looking.counts())

    empty = engine_on(empty_postgres_url)
    with pytest.raises(psycopg.errors.UndefinedTable, match="orders"):
        ask()
    with pytest.raises(psycopg.errors.UndefinedFunction, match="nothing"):
        await ask_async()
    with pytest.raises((SchemaMissing, SchemaTooOld)):
        ask_ours()
    empty.close()


# --- lost connections ----------------------------------------------------------------------------------


@operation(repeatable=True, writes="")
def look(server: PostgresServer, name: str, kills: list[int]) -> Steps[int]:
    """Kill our own connection once, between two statements of one unit."""
    yield from execute("clock")
    if kills:
        kills.pop()
        server.kill_backends(name)
    yield from execute("clock")
    return 7


def test_a_connection_killed_before_a_call_is_replaced_unseen(
    pg: PostgresEngine, server: PostgresServer
) -> None:
    submit(pg)
    assert server.kill_backends(database(pg), ROLE) >= 1
    submit(pg)
    assert len(pg.run(looking.list_jobs())) == 2


async def test_the_same_for_async_callers(pg: PostgresEngine, server: PostgresServer) -> None:
    await pg.arun(store.submit([new_job()]))
    assert server.kill_backends(database(pg), ROLE) >= 1
    await pg.arun(store.submit([new_job()]))
    found = await pg.arun(looking.list_jobs())
    assert len(found) == 2


def test_a_repeatable_unit_killed_inside_is_run_again(pg: PostgresEngine, server: PostgresServer) -> None:
    assert pg.run(look(server, database(pg), [1])) == 7
    with pytest.raises(Unavailable):  # once; a server that does so each time is away
        pg.run(look(server, database(pg), [1, 1]))


async def test_the_same_inside_for_async_callers(pg: PostgresEngine, server: PostgresServer) -> None:
    assert await pg.arun(look(server, database(pg), [1])) == 7


@pytest.mark.parametrize("state", sorted(LOST_STATES))
def test_what_the_server_says_when_it_ends_a_connection_is_known(state: str) -> None:
    """Whatever class the driver sorts the code into: two of them are internal errors to it."""
    error = psycopg.errors.lookup(state)("as wanted")

    assert connection_lost(error) and is_lost(error)


@pytest.fixture
def impatient(pg: PostgresEngine, server: PostgresServer) -> Callable[[], None]:
    """Make the server end transactions that idle; returns how to wait until it has."""
    name = database(pg)
    with server.connect() as connection:
        connection.execute(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '20ms'".encode())
    server.kill_backends(name)  # a pooler would go on with those that it opened before
    pg.run(store.clock())

    def ended() -> None:
        query = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND state = 'idle in transaction'"
        with server.connect() as watching:
            while watching.execute(query, [name]).fetchone():
                time.sleep(0.005)

    return ended


def test_a_unit_that_the_server_ended_for_idling_stored_nothing(
    pg: PostgresEngine, impatient: Callable[[], None]
) -> None:
    @operation()
    def unit() -> Steps[None]:
        yield from store.submit([new_job()]).steps()
        impatient()
        yield from execute("clock")

    with pytest.raises(Unavailable, match="nothing was stored"):
        pg.run(unit())
    assert pg.run(looking.list_jobs()) == []


def test_so_it_is_for_a_session_of_the_users(pg: PostgresEngine, impatient: Callable[[], None]) -> None:
    with pytest.raises(Unavailable), pg.session() as session:
        session.run(store.submit([new_job()]))
        impatient()
        session.run(store.clock())
    assert pg.run(looking.list_jobs()) == []


def test_another_unit_killed_inside_is_unavailable_and_stored_nothing(
    pg: PostgresEngine, server: PostgresServer
) -> None:
    name = database(pg)

    @operation()
    def unit() -> Steps[None]:
        yield from store.submit([new_job()]).steps()
        server.kill_backends(name)
        yield from execute("clock")

    with pytest.raises(Unavailable, match="nothing was stored"):
        pg.run(unit())
    assert pg.run(looking.list_jobs()) == []


def test_a_statement_that_is_its_own_commit_leaves_the_outcome_unknown(
    pg: PostgresEngine, server: PostgresServer
) -> None:
    slow = with_text(pg, "SELECT pg_sleep(30)")
    unit = Operation("once", plain("clock").start, alone=True)
    with pytest.raises(OutcomeUnknown):
        _run_and_kill(slow, unit, server, database(pg))
    slow.close()


def _run_and_kill(engine: PostgresEngine, unit: Operation[Any], server: PostgresServer, name: str) -> None:
    """Kill the connection while its statement runs."""

    def kill() -> None:
        with server.connect() as connection:
            ask = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event = 'PgSleep'"
            while not connection.execute(ask, [name]).fetchone():
                pass
        server.kill_backends(name)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        engine.run(unit)
    finally:
        killer.join()


def test_the_engine_works_again_soon_after_a_crash_of_the_server() -> None:
    with CopiedServer(fast=True) as mortal:
        engine = engine_on(mortal.create_role_and_schema(role="app", database="app"), connect_timeout_s=2.0)
        store.migrate(engine)
        (job_id,) = submit(engine)
        mortal.stop("immediate")
        with pytest.raises((Unavailable, OutcomeUnknown)):
            engine.run(store.submit([new_job()]))
        mortal.start()

        found = _soon(engine, time.monotonic() + 30)
        assert [job.id for job in found] == [job_id], "what was committed is there"
        engine.close()


def _soon(engine: PostgresEngine, deadline: float) -> list[JobRecord]:
    while time.monotonic() < deadline:
        try:
            return engine.run(looking.list_jobs())
        except Unavailable:
            continue
    raise AssertionError("it did not come back in time")


# --- contention ----------------------------------------------------------------------------------------


def test_a_deadlock_is_lost_by_one_and_repeated_unseen(pg: PostgresEngine) -> None:
    one, two = submit(pg, new_job(), new_job())
    both = threading.Barrier(2, timeout=PATIENCE_S)
    runs: list[str] = []

    text = 'UPDATE "fencerow".jobs SET awaited = true WHERE id = CAST(:id AS uuid)'
    clock = pg.queries["clock"].statements[0]
    pg.queries = pg.queries.altered("clock", clock, text)

    @operation()
    def lock_in_turn(first: str, second: str) -> Steps[None]:
        runs.append(first)
        yield from execute("clock", id=first)
        if len(runs) <= 2:
            both.wait()
        yield from execute("clock", id=second)

    errors: list[BaseException] = []

    def work(first: str, second: str) -> None:
        try:
            pg.run(lock_in_turn(first, second))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(runs) == 3, "one of the two lost and ran again"


async def test_contention_without_end_is_given_up(pg: PostgresEngine) -> None:
    always = with_text(pg, "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
    with pytest.raises(Busy, match="lost to other transactions"):
        always.run(plain("clock"))
    with pytest.raises(Busy, match="nothing was stored"):
        await always.arun(plain("clock"))
    await always.aclose()


# --- sessions, loops, callers, forks -----------------------------------------------------------------------


async def test_sessions_commit_at_the_end_and_roll_back_on_an_exception(pg: PostgresEngine) -> None:
    with pg.session() as session:
        session.run(store.submit([first := new_job()]))
    async with pg.asession() as asession:
        await asession.arun(store.submit([second := new_job()]))

    def torn() -> None:
        with pg.session() as session:
            session.run(store.submit([new_job()]))
            raise KeyError("user code")

    async def atorn() -> None:
        async with pg.asession() as session:
            await session.arun(store.submit([new_job()]))
            raise KeyError("user code")

    with pytest.raises(KeyError, match="user code"):
        torn()
    with pytest.raises(KeyError, match="user code"):
        await atorn()
    assert {job.id for job in pg.run(looking.list_jobs())} == {first.id, second.id}


async def test_a_cancelled_caller_does_not_cancel_the_commit(pg: PostgresEngine) -> None:
    with psycopg.connect(pg.conninfo) as other:
        other.execute("LOCK TABLE fencerow.jobs IN ACCESS EXCLUSIVE MODE")
        task = asyncio.create_task(pg.arun(store.submit([job := new_job()])))
        await _until_waiting(pg.conninfo)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await pg.aclose()  # waits for what is under way
    assert [found.id for found in pg.run(looking.list_jobs())] == [job.id]


async def _until_waiting(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True, prepare_threshold=None) as connection:
        ask = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        while not connection.execute(ask).fetchone():
            await asyncio.sleep(0)


def test_two_event_loops_and_plain_threads_share_an_engine(pg: PostgresEngine) -> None:
    async def ten() -> None:
        await asyncio.gather(*(pg.arun(store.submit([new_job()])) for _ in range(10)))
        await pg.aclose()

    threads = [threading.Thread(target=lambda: asyncio.run(ten())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(10):
        submit(pg)
    assert len(pg.run(looking.list_jobs(limit=100))) == 30


def test_a_forked_child_opens_connections_of_its_own(pg: PostgresEngine) -> None:
    submit(pg)
    pg.wake(["before"])
    pg.flush(5)
    if (pid := os.fork()) == 0:
        try:
            submit(pg)
            pg.wake(["child"])
            pg.flush(5)
            pg.close()
            os._exit(0)
        finally:
            os._exit(1)
    submit(pg)
    assert os.waitpid(pid, 0)[1] == 0
    submit(pg)
    assert len(pg.run(looking.list_jobs())) == 4


@pytest.mark.parametrize("wiped", [True, False], ids=["by a page", "by the system"])
def test_so_does_a_child_of_which_python_was_not_told(
    pg: PostgresEngine, wiped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uWSGI forks so. Its workers wrote into one socket, took each other's answers and made the same ids."""
    if not wiped:
        monkeypatch.setattr(forks, "_page", forks.EMPTY)
    submit(pg)
    count = forks._count
    if (pid := os.fork()) == 0:
        try:
            forks._count = count
            for _ in range(3):
                submit(pg)
            os._exit(0)
        finally:
            os._exit(1)
    for _ in range(3):
        submit(pg)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(pg.run(looking.list_jobs())) == 7


def test_such_a_child_waits_for_no_thread_of_its_parent(
    pg: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the parent had opened ended there, and the first submit waited 5 s for each thread that looked alive."""
    submit(pg)
    count = forks._count
    if (pid := os.fork()) == 0:
        try:
            forks._count = count
            monkeypatch.setattr(threading.Thread, "is_alive", lambda _: True)  # Python was not told
            monkeypatch.setattr(threading.Thread, "join", lambda *_: os._exit(1))
            submit(pg)
            os._exit(0)
        finally:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0


def test_renewals_and_statements_go_on_while_users_hold_all_their_connections(pg: PostgresEngine) -> None:
    holder = register(pg)
    small = engine_on(pg.conninfo, pool_max=2, connect_timeout_s=slower(5.0), statement_timeout_s=slower(5.0))
    keeper = small.keeper()
    with small.session() as session:
        session.run(store.submit([new_job()]))
        with pytest.raises(Unavailable), small.session():
            raise AssertionError("there is one connection for users, and it is taken")
        assert small.run(store.renew(holder=holder))
        assert keeper.run(store.renew(holder=holder))
    keeper.close()
    small.close()


def test_nothing_is_left_in_a_session(pg: PostgresEngine) -> None:
    """A pooler in transaction mode may hand the connection to anybody."""
    submit(pg)
    claim(pg, register(pg))
    with pg.session() as session:
        ask = session.connection.execute
        assert ask("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)
        assert ask(CHANGED_SETTINGS).fetchall() == []


@pytest.fixture
def second(pg: PostgresEngine) -> Iterator[PostgresEngine]:
    made = postgres_engine(pg.conninfo)
    yield made
    made.close()


def test_a_long_claim_of_one_engine_does_not_make_another_wait(
    pg: PostgresEngine, second: PostgresEngine
) -> None:
    jobs = submit(pg, new_job(), new_job())
    holder = register(pg)
    with pg.session() as session:
        claim_one = store.claim("mail", [Mark(0)], holder=holder, names=["send"], limit=1, margin_s=60)
        (first,) = session.run(claim_one)
        taken = claim(second, register(second))
    assert [first.id, *(job.id for job in taken)] == jobs


async def test_the_roles_own_isolation_level_does_not_weaken_a_guard(
    pg: PostgresEngine, server: PostgresServer
) -> None:
    """A guard looks in a later statement than its lock; one snapshot for all would not see what it waited for."""
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute(
            f"ALTER ROLE {ROLE} IN DATABASE {connection.info.dbname} "
            "SET default_transaction_isolation = 'repeatable read'"
        )
    server.kill_backends(database(pg), ROLE)  # it counts for new ones, which a pooler may not need
    with psycopg.connect(pg.conninfo) as connection:
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
    with pg.session() as session:
        assert session.connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
    async with pg.asession() as asession:
        shown = await asession.connection.execute("SHOW transaction_isolation")
        assert await shown.fetchone() == ("read committed",)
