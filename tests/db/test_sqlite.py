"""SQLite: two files and their locks, what its errors become, forks, threads and cancelled callers."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.db import forks, sqlite, sqlite_connection, sqlite_locks
from fencerow.db.run import Operation, Steps, execute, operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_file import fault, translated, wal_is_safe
from fencerow.errors import (
    Busy,
    DatabaseError,
    OutcomeUnknown,
    ReadOnly,
    SchemaMissing,
    StorageFull,
    Unavailable,
)
from fencerow.operators import looking
from tests.kit.jobs import claim, new_job, register, submit
from tests.kit.pace import slower

BUSY_S = slower(300.0)


@pytest.fixture
def hasty(lite: SqliteEngine) -> Iterator[SqliteEngine]:
    """A second engine on the same file that does not wait long for a lock."""
    engine = SqliteEngine(lite.path, lite.queries, busy_timeout_s=0.2)
    yield engine
    engine.close()


def other_writer(lite: SqliteEngine) -> sqlite3.Connection:
    """Another process's write transaction on the jobs."""
    connection = sqlite3.connect(lite.path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


def test_a_statement_asks_for_the_time_once_however_many_rows_it_has(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = itertools.count(1)
    monkeypatch.setattr(lite.clock, "now_us", lambda: next(asked))

    with lite.session() as session:
        found = [
            session.connection.execute("SELECT fencerow_now() FROM json_each('[1, 2, 3]')").fetchall()
            for _ in range(2)
        ]

    assert found == [[(1,)] * 3, [(2,)] * 3], "and each run of it asks anew"


def test_a_file_is_one_database_by_whatever_link_it_is_reached(lite: SqliteEngine, tmp_path: Path) -> None:
    """Workers that came by two names would each take the other's for dead."""
    link = tmp_path / "link.db"
    link.symlink_to(lite.path)
    holder = register(lite, lease_s=60.0)
    linked = SqliteEngine(link, lite.queries)
    try:
        assert [each.id for each in linked.run(store.list_workers())] == [holder]
        assert linked.path == lite.path
    finally:
        linked.close()


@pytest.mark.parametrize("suffix", ["", "-workers"])
def test_other_programs_work_on_the_files_without_our_functions(lite: SqliteEngine, suffix: str) -> None:
    """A trigger, default, check or index that called one would break every tool that does not have it."""
    register(lite, lease_s=1.0)
    submit(lite, new_job())
    with closing(sqlite3.connect(f"{lite.path}{suffix}", isolation_level=None)) as plain:
        tables = [row[0] for row in plain.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert any(name.endswith("workers" if suffix else "jobs") for name in tables)
        for name in tables:
            if name != "sqlite_sequence":
                touch(plain, name)

        # The control: one that does call it is found.
        (table,) = [name for name in tables if name.endswith("workers" if suffix else "fencerow_queues")]
        plain.create_function("fencerow_now", 0, lambda: 1)
        plain.execute(
            f"CREATE TRIGGER stamp AFTER INSERT ON {table} BEGIN"
            f" UPDATE {table} SET {columns(plain, table)[1][0]} = fencerow_now(); END"
        )
    with closing(sqlite3.connect(f"{lite.path}{suffix}", isolation_level=None)) as plain:
        with pytest.raises(sqlite3.OperationalError, match="no such function: fencerow_now"):
            touch(plain, table)
        plain.execute("DROP TRIGGER stamp")


def columns(plain: sqlite3.Connection, table: str) -> list[tuple[str, bool]]:
    """Name of each column, and whether SQLite computes it."""
    return [(row[1], row[6] > 1) for row in plain.execute(f"PRAGMA table_xinfo({table})")]


def touch(plain: sqlite3.Connection, table: str) -> None:
    """Prepare a statement of each kind on a table, with all that its schema hangs on them; change nothing."""
    names = [name for name, computed in columns(plain, table) if not computed]
    plain.execute("BEGIN")
    plain.execute(f"SELECT * FROM {table}").fetchall()
    plain.execute(f"UPDATE {table} SET {', '.join(f'{name} = {name}' for name in names)}")
    plain.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(names)} FROM {table} WHERE 0")
    plain.execute(f"EXPLAIN INSERT INTO {table} DEFAULT VALUES")
    plain.execute(f"DELETE FROM {table}")
    plain.execute("ROLLBACK")


def test_a_long_transaction_on_the_jobs_delays_no_renewal(lite: SqliteEngine) -> None:
    holder = register(lite)
    patient = SqliteEngine(lite.path, lite.queries, busy_timeout_s=BUSY_S)
    keeper = patient.keeper()
    with patient.session() as session:
        session.run(store.submit([new_job()]))
        started = time.monotonic()
        assert keeper.run(store.renew(holder=holder))
        assert patient.run(store.renew(holder=holder))
        assert time.monotonic() - started < BUSY_S / 10, (
            "for the transaction it would wait for as long as it may"
        )
    keeper.close()
    patient.close()


def test_another_process_in_a_transaction_delays_no_renewal(lite: SqliteEngine) -> None:
    holder = register(lite)
    other = other_writer(lite)
    assert lite.run(store.renew(holder=holder))  # it would be refused after ten seconds
    other.close()


async def test_the_async_renewal_passes_a_busy_writer_too(lite: SqliteEngine) -> None:
    holder = register(lite)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lite.session() as session:
            session.run(store.submit([new_job()]))
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(60)
    waiting = asyncio.create_task(lite.arun(store.submit([new_job()])))
    assert await asyncio.wait_for(lite.arun(store.renew(holder=holder)), 30)
    assert not waiting.done()
    leave.set()
    await waiting
    thread.join()


def test_a_locked_file_is_busy_within_the_allowed_wait(
    lite: SqliteEngine, hasty: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, slept_s = other_writer(lite), list[float]()
    clock = SimpleNamespace(
        monotonic=lambda: 1000.0 + sum(slept_s), sleep=slept_s.append, time_ns=time.time_ns
    )
    monkeypatch.setattr(sqlite_locks, "time", clock)
    with pytest.raises(Busy, match=r"locked by another writer\n.* submit waited 0.2 s for its turn"):
        hasty.run(store.submit([new_job()]))
    assert 0.1 < sum(slept_s) < 0.3
    assert hasty.run(looking.list_jobs()) == []
    other.execute("ROLLBACK")
    other.close()
    submit(hasty)


async def test_many_who_wait_for_a_locked_file_wait_no_longer_than_one(
    lite: SqliteEngine, hasty: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept_s = list[float]()
    clock = SimpleNamespace(
        monotonic=lambda: 1000.0 + sum(slept_s), sleep=slept_s.append, time_ns=time.time_ns
    )
    for module in (sqlite, sqlite_locks):
        monkeypatch.setattr(module, "time", clock)
    with closing(other_writer(lite)):
        asked = [hasty.arun(store.submit([new_job()])) for _ in range(20)]
        told = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(each, Busy) and "waited 0.2" in str(each) for each in told)
    assert sum(slept_s) < 0.4
    await hasty.arun(store.submit([new_job()]))
    await hasty.aclose()


def test_who_has_waited_out_its_time_and_has_its_turn_waits_for_a_short_reader(lite: SqliteEngine) -> None:
    connection = lite._connected_to_jobs()
    connection.begin(0.0, writes=True)
    assert connection.connection.execute("PRAGMA busy_timeout").fetchone() == (50,)
    connection.connection.execute("ROLLBACK")


def test_a_transaction_of_this_process_in_the_way_is_named(lite: SqliteEngine, hasty: SqliteEngine) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with hasty.session():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(60)
    with pytest.raises(Busy, match="of this process"):
        hasty.run(store.submit([new_job()]))
    leave.set()
    thread.join()


def test_a_folder_that_is_missing(sqlite_path: Path) -> None:
    engine = SqliteEngine(sqlite_path.parent / "nowhere" / "jobs.db", store.sqlite_queries())
    with pytest.raises(Unavailable, match="there is no folder"):
        engine.run(store.clock())
    engine.close()


def test_a_file_that_is_something_else(sqlite_path: Path) -> None:
    sqlite_path.write_bytes(b"%PDF-1.7 " * 500)
    engine = SqliteEngine(sqlite_path, store.sqlite_queries())
    with pytest.raises(DatabaseError, match="not a usable SQLite database"):
        engine.run(store.clock())
    engine.close()


def test_a_file_without_our_tables(sqlite_path: Path) -> None:
    engine = SqliteEngine(sqlite_path, store.sqlite_queries())
    for ask in (
        lambda: engine.run(store.submit([new_job()])),
        lambda: engine.run(looking.counts()),
    ):
        with pytest.raises(SchemaMissing, match="fencerow migrate"):
            ask()
    engine.close()


def test_a_read_only_file(lite: SqliteEngine) -> None:
    """Root may write any file, so the connection is told what a protected file would tell it."""
    with lite.session() as session:
        session.connection.execute("PRAGMA query_only = ON")
        with pytest.raises(ReadOnly), translated(lite.path):
            session.run(store.submit([new_job()]))


def test_a_protected_file(lite: SqliteEngine) -> None:
    """Root may write any file, so a child of ours without rights tries it."""
    submit(lite)
    lite.close()
    for path in lite.path.parent.iterdir():
        path.chmod(0o444)
    lite.path.parent.chmod(0o555)
    told, tell = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            lite.run(store.submit([new_job()]))
        except BaseException as error:
            os.write(tell, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(tell)
    assert os.read(told, 100).decode() == "ReadOnly"
    os.close(told)
    lite.path.parent.chmod(0o755)


def test_a_full_disk_stores_nothing(lite: SqliteEngine) -> None:
    submit(lite)
    lite._connected_to_jobs().connection.execute(
        "PRAGMA max_page_count = 1"
    )  # the file may not grow, as on a full disk
    large = [new_job('{"x":"' + "a" * 40_000 + '"}') for _ in range(20)]
    with pytest.raises(StorageFull, match="no space"):
        lite.run(store.submit(large))
    before = len(lite.run(looking.list_jobs(limit=10_000)))
    lite._connected_to_jobs().connection.execute("PRAGMA max_page_count = 1000000")
    submit(lite)
    assert len(lite.run(looking.list_jobs(limit=10_000))) == before + 1


def io_error(kind: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = f"SQLITE_IOERR{kind}"
    return error


@pytest.mark.parametrize(
    ("kind", "known", "repeat"),
    [
        ("_READ", Unavailable, "yes"),
        ("_FSYNC", Unavailable, "yes"),
        ("_LOCK", Unavailable, "yes"),
        ("_NOMEM", Unavailable, "yes"),
        ("_CORRUPTFS", DatabaseError, "no"),
    ],
)
def test_an_io_error_before_the_commit_stored_nothing(
    kind: str, known: type[DatabaseError], repeat: str
) -> None:
    found = fault(io_error(kind), Path("jobs.db"))
    assert type(found) is known
    assert found.repeat == repeat


@pytest.mark.parametrize("statement", ["INSERT", "COMMIT"])
def test_an_io_error_at_commit_is_an_unknown_outcome(lite: SqliteEngine, statement: str) -> None:
    class Failing:
        """A connection to a disk that fails at one statement."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        def execute(self, text: str, *params: Any) -> Any:
            if text.startswith(statement):
                raise io_error("_FSYNC")
            return self._connection.execute(text, *params)

    lite.run(store.clock())
    session = lite._connected_to_jobs()
    whole, session.connection = session.connection, Failing(session.connection)  # type: ignore[assignment]
    with pytest.raises(OutcomeUnknown if statement == "COMMIT" else Unavailable):
        lite.run(store.submit([job := new_job()]))
    session.connection = whole

    assert lite.run(store.resubmit([job])) == [job.id]


@operation()
def _break_a_rule() -> Steps[None]:
    yield from execute("submit", jobs=f'[{{"queue":null,"jobs":[["{new_id()}",2,"{{}}"]]}}]')


def test_integrity_errors_reach_the_caller_unchanged(lite: SqliteEngine) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        lite.run(_break_a_rule())
    submit(lite)


def test_a_callers_own_missing_table_is_not_taken_for_ours(lite: SqliteEngine, sqlite_path: Path) -> None:
    def ask(engine: SqliteEngine) -> None:
        with engine.session() as session:
            session.connection.execute("SELECT * FROM orders")

    with pytest.raises(sqlite3.OperationalError, match="orders"):
        ask(lite)

    def ask_ours() -> None:
        with empty.session() as session:
            session.run(looking.counts())

    empty = SqliteEngine(sqlite_path.with_name("empty.db"), lite.queries)
    with pytest.raises(SchemaMissing):
        ask_ours()
    empty.close()


def test_a_session_rolls_back_on_an_exception(lite: SqliteEngine) -> None:
    def torn() -> None:
        with lite.session() as session:
            session.run(store.submit([new_job()]))
            raise KeyError("user code")

    with pytest.raises(KeyError, match="user code"):
        torn()
    assert lite.run(looking.list_jobs()) == []


async def test_an_async_session_commits_and_rolls_back(lite: SqliteEngine) -> None:
    async with lite.asession() as session:
        await session.arun(store.submit([job := new_job()]))

    async def torn() -> None:
        async with lite.asession() as session:
            await session.arun(store.submit([new_job()]))
            raise KeyError("user code")

    with pytest.raises(KeyError, match="user code"):
        await torn()
    assert [found.id for found in await lite.arun(looking.list_jobs())] == [job.id]


async def test_a_cancelled_caller_does_not_cancel_the_commit(lite: SqliteEngine) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lite.session():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(60)
    task = asyncio.create_task(lite.arun(store.submit([job := new_job()])))
    await asyncio.sleep(0)  # it has been handed over, and waits for the file
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    leave.set()
    thread.join()
    assert [found.id for found in await lite.arun(looking.list_jobs())] == [job.id]


@pytest.mark.parametrize("in_session", [False, True])
async def test_what_fails_after_its_caller_was_cancelled_is_no_complaint_of_the_loop(
    lite: SqliteEngine, hasty: SqliteEngine, in_session: bool
) -> None:
    """Nobody can retrieve such an error any more, and a log at level ERROR would accuse somebody of that."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def ask() -> None:
        if not in_session:
            await hasty.arun(store.submit([new_job()]))
        else:
            async with hasty.asession():
                pytest.fail("the file is locked")

    with closing(other_writer(lite)):
        task = asyncio.create_task(ask())
        await asyncio.sleep(0)  # it has been handed over, and waits for the file
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        with pytest.raises(Busy):  # its turn comes after that of the cancelled one, which has failed by then
            await hasty.arun(store.submit([new_job()]))
    await hasty.aclose()
    gc.collect()
    await asyncio.sleep(0)

    assert complaints == []


def test_a_forked_child_opens_connections_of_its_own(lite: SqliteEngine) -> None:
    submit(lite)
    register(lite)
    reads, writes = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            ids = submit(lite)
            lite.run(store.renew(holder=register(lite)))
            os.write(writes, ids[0].encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writes)
    told = os.read(reads, 100).decode()
    os.close(reads)
    assert os.waitpid(pid, 0)[1] == 0
    assert told in {job.id for job in lite.run(looking.list_jobs())}
    assert len(claim(lite, register(lite))) == 2


def test_a_fork_while_a_thread_writes_leaves_the_child_no_locked_lock(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "FORK_WAIT_S", 0.01)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lite.session():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(60)
    if (pid := os.fork()) == 0:
        try:
            lite.run(looking.list_jobs())
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    leave.set()
    thread.join()


def test_a_fork_waits_for_a_transaction_so_that_the_child_may_write(hasty: SqliteEngine) -> None:
    """SQLite would take a lock that it inherits for the child's own, and never let go of it."""
    entered = threading.Event()

    def hold() -> None:
        with hasty.session():
            entered.set()
            time.sleep(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(60)
    if (pid := os.fork()) == 0:
        try:
            submit(hasty)
            os._exit(0)
        finally:
            os._exit(1)
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0


async def test_a_fork_in_an_event_loop_does_not_wait_for_who_needs_the_loop(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop forks, as far as anybody is told, whenever a program is started in it."""
    monkeypatch.setattr(sqlite, "FORK_WAIT_S", 30.0)
    async with lite.asession():
        began = time.monotonic()
        lite.before_fork()()
        assert time.monotonic() - began < 30.0


def test_what_a_child_stores_stays_when_its_parent_lets_go_of_the_file(lite: SqliteEngine) -> None:
    lite.close()
    logged = SqliteEngine(lite.path, lite.queries, journal_mode="wal")
    submit(logged)
    asked, ask = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            submit(logged)
            os.read(asked, 1)
            submit(logged)
            os._exit(0)
        finally:
            os._exit(1)
    while len(logged.run(looking.list_jobs())) < 2:
        time.sleep(0.01)
    logged.close()
    os.write(ask, b"x")
    assert os.waitpid(pid, 0)[1] == 0
    assert len(logged.run(looking.list_jobs())) == 3
    logged.close()
    os.close(asked)
    os.close(ask)


def test_a_child_of_which_python_was_not_told_closes_nothing_of_its_parents(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it closed was the parent's: the log went in which the parent writes, and the socket by which it hears."""
    submit(lite)
    of_parent = lite._jobs
    assert of_parent is not None
    monkeypatch.setattr(forks, "_page", forks.EMPTY)
    monkeypatch.setattr(forks, "process", lambda: (0, -1))
    lite.close()
    assert of_parent.connection.execute("SELECT 1").fetchone() == (1,)
    of_parent.close()


def test_two_event_loops_and_plain_threads_share_an_engine(lite: SqliteEngine) -> None:
    def loop() -> None:
        asyncio.run(_submit_ten(lite))

    threads = [threading.Thread(target=loop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        submit(lite)
    for thread in threads:
        thread.join()
    assert len(lite.run(looking.list_jobs(limit=100))) == 30


async def _submit_ten(engine: SqliteEngine) -> None:
    await asyncio.gather(*(engine.arun(store.submit([new_job()])) for _ in range(10)))


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 60, 0), True),
    ],
)
def test_which_versions_may_use_a_write_ahead_log(version: tuple[int, int, int], safe: bool) -> None:
    assert wal_is_safe(version) is safe


@pytest.mark.parametrize("mode", ["wal", "truncate"])
def test_both_journal_modes_do_the_work(sqlite_path: Path, mode: str) -> None:
    engine = SqliteEngine(sqlite_path, store.sqlite_queries(), journal_mode=mode)
    store.migrate(engine)
    submit(engine)
    assert len(claim(engine, register(engine))) == 1
    with engine.session() as session:
        assert session.connection.execute("PRAGMA main.journal_mode").fetchone() == (mode,)
        assert session.connection.execute("PRAGMA main.synchronous").fetchone() == (2,)
    engine.close()


def test_whoever_waits_for_the_write_lock_looks_as_often_at_the_end_as_at_the_beginning(
    lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own waiting sleeps longer after each try, and beside a busy writer comes to nothing for seconds."""
    stranger, pauses = other_writer(lite), list[float]()

    def sleep(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 200:
            stranger.execute("ROLLBACK")

    clock = SimpleNamespace(sleep=sleep, monotonic=time.monotonic, time_ns=time.time_ns)
    monkeypatch.setattr(sqlite_locks, "time", clock)
    submit(lite)
    stranger.close()

    assert len(pauses) == 200 and max(pauses) < 0.002


def test_a_reader_beside_writers_without_a_pause_looks_as_often_as_they_do(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a rollback journal a commit shuts readers out; with SQLite's own pauses one read nothing for seconds."""
    engine = SqliteEngine(sqlite_path, store.sqlite_queries(), journal_mode="truncate")
    store.migrate(engine)
    stranger, pauses = sqlite3.connect(sqlite_path, isolation_level=None), list[float]()
    stranger.execute("BEGIN EXCLUSIVE")

    def sleep(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 200:
            stranger.execute("ROLLBACK")

    clock = SimpleNamespace(sleep=sleep, monotonic=time.monotonic, time_ns=time.time_ns)
    monkeypatch.setattr(sqlite_locks, "time", clock)
    assert engine.run(looking.list_jobs()) == []
    stranger.close()
    engine.close()

    assert len(pauses) == 200 and max(pauses) < 0.002


@pytest.mark.parametrize("first", [looking.list_jobs(), store.list_workers()], ids=["jobs", "workers"])
def test_who_opens_a_file_beside_writers_without_a_pause_looks_as_often_as_they_do(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch, first: Operation[Any]
) -> None:
    """It reads the file to open it, and with SQLite's own pauses came to nothing until it gave up."""
    maker = SqliteEngine(sqlite_path, store.sqlite_queries(), journal_mode="truncate")
    store.migrate(maker)
    stranger, pauses = sqlite3.connect(sqlite_path, isolation_level=None), list[float]()
    stranger.execute("BEGIN EXCLUSIVE")

    def sleep(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 200:
            stranger.execute("ROLLBACK")

    clock = SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
    monkeypatch.setattr(sqlite_locks, "time", clock)
    newcomer = SqliteEngine(sqlite_path, store.sqlite_queries(), journal_mode="truncate")
    assert newcomer.run(first) == []
    for each in (stranger, maker, newcomer):
        each.close()

    assert len(pauses) == 200 and max(pauses) < 0.002


@pytest.mark.parametrize(
    ("journal", "commit_s", "room_s"), [("truncate", 1.0, [0.02]), ("truncate", 0.01, []), ("wal", 1.0, [])]
)
def test_a_writer_whose_commits_take_long_lets_readers_in_before_the_next(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str, commit_s: float, room_s: list[float]
) -> None:
    """Else they find the file open for a millisecond between two commits, and come to nothing for many of these."""
    writer, reader = (
        SqliteEngine(sqlite_path, store.sqlite_queries(), journal_mode=journal) for _ in range(2)
    )
    store.migrate(writer)
    instants, slept_s, read = itertools.count(step=commit_s), list[float](), list[int]()

    def sleep(pause_s: float) -> None:
        slept_s.append(pause_s)
        read.append(len(reader.run(looking.list_jobs())))

    clock = SimpleNamespace(monotonic=lambda: next(instants), sleep=sleep, time_ns=time.time_ns)
    submit(writer)
    monkeypatch.setattr(sqlite_connection, "time", clock)
    submit(writer)  # it learns how long a commit takes
    slept_s.clear()
    read.clear()
    writer.run(looking.list_jobs())
    submit(writer)

    assert slept_s == room_s
    assert read == [2 for _ in room_s]
    for each in (writer, reader):
        each.close()
