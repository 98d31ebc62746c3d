"""Finished jobs on PostgreSQL lie in periods, and go with them: nobody who ends a job ever waits for that."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from fencerow import Config
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import Success
from fencerow.core.telemetry import Telemetry
from fencerow.db.postgres import PostgresEngine
from fencerow.db.queries import pyformat
from fencerow.errors import Busy
from fencerow.retention.maintenance import MaintenanceChore
from fencerow.retention.periods import close_periods, detach_period, make_period, periods, take_period
from fencerow.testing.clock import PostgresClock
from tests.conftest import postgres_engine
from tests.core.store import stage
from tests.core.store.stage import bring
from tests.kit.jobs import claim, new_job, register, running, submit

HOUR = 3600.0
LATER = 3.5 * HOUR  # the first period of an hour is past a retention of two, the second is not
KEPT = "finished_kept"
CONFIG = Config(
    retention_period_s=HOUR, retention_succeeded_s=2 * HOUR, retention_failed_s=2 * HOUR,
    retention_cancelled_s=60.0,
)  # fmt: skip


@pytest.fixture
def pg_clock(pg: PostgresEngine) -> PostgresClock:
    return PostgresClock(pg.conninfo)


@pytest.fixture
def keeping(pg: PostgresEngine, pg_clock: PostgresClock) -> MaintenanceChore:
    """Maintenance that has made its first periods, and the first of each state is open."""
    made = MaintenanceChore(pg, CONFIG, Telemetry())
    round_of(pg, made)
    pg_clock.advance(11)
    return made


def round_of(pg: PostgresEngine, maintenance: MaintenanceChore) -> None:
    async def once() -> None:
        await maintenance.round()
        await pg.aclose()

    asyncio.run(once())


def query(pg: PostgresEngine, text: str) -> list[tuple[object, ...]]:
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        cursor = connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else []


def places(pg: PostgresEngine) -> dict[str, str]:
    """In which table each finished job lies."""
    found = query(pg, "SELECT id::text, tableoid::regclass::text FROM fencerow.finished_jobs")
    return {str(job_id): str(table).removeprefix("fencerow.") for job_id, table in found}


def tables(pg: PostgresEngine) -> set[str]:
    found = query(pg, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'finished\\_%\\_%'")
    return {str(row[0]) for row in found} - {"finished_periods"}


def ended(pg: PostgresEngine, **changes: object) -> str:
    job = running(pg, holder := register(pg), **changes)
    assert pg.run(store.succeed([Success(job.id, job.attempt, "1")], holder=holder))
    return job.id


# --- making ----------------------------------------------------------------------------------------


def test_periods_are_made_ahead_by_many_at_once(pg: PostgresEngine, pg_clock: PostgresClock) -> None:
    def make(_: int) -> int:
        engine = postgres_engine(pg.conninfo)
        made = 0
        try:
            for _ in range(4):
                made += engine.run(make_period(State.FAILED, length_s=60.0, lock=7)) is not None
        finally:
            engine.close()
        return made

    with ThreadPoolExecutor(4) as makers:
        made = sum(makers.map(make, range(4)))
    known = pg.run(periods())
    assert made == len(known) == 2
    assert known[0].ends_us == known[1].starts_us and all(each.is_ahead for each in known)
    pg_clock.advance(11)  # the first has begun, so one more is needed
    assert pg.run(make_period(State.FAILED, length_s=60.0, lock=7)) is not None
    assert pg.run(make_period(State.FAILED, length_s=60.0, lock=7)) is None


def test_a_job_goes_to_the_period_of_its_end(pg: PostgresEngine, keeping: MaintenanceChore) -> None:
    succeeded, own = ended(pg), ended(pg, retention_s=5.0)
    failed, cancelled = bring(pg, State.FAILED), bring(pg, State.CANCELLED)
    found = places(pg)
    assert found[succeeded].startswith("finished_succeeded_")
    assert found[failed.id].startswith("finished_failed_")
    assert found[own] == KEPT, "it has a retention of its own"
    assert found[cancelled.id] == KEPT, "these go too soon for periods"
    assert pg.run(store.read([succeeded, own, failed.id])).keys() == {succeeded, own, failed.id}


@pytest.mark.parametrize("jump_s", [40 * 365 * 86400.0, -40 * 365 * 86400.0])
def test_a_job_ends_when_no_period_is_open(
    pg: PostgresEngine, pg_clock: PostgresClock, keeping: MaintenanceChore, jump_s: float
) -> None:
    pg_clock.advance(jump_s)
    job = ended(pg)
    assert places(pg)[job] == KEPT


# --- ending ----------------------------------------------------------------------------------------


def test_a_period_goes_with_its_jobs_and_their_notes(
    pg: PostgresEngine, pg_clock: PostgresClock, keeping: MaintenanceChore
) -> None:
    job = running(pg, holder := register(pg))
    pg.run(store.log(job.id, holder=holder, attempt=1, level="info", message="m"))
    pg.run(store.progress(job.id, holder=holder, attempt=1, percent=1.0, note="n"))
    pg.run(store.cancel(job.id, actor="ada"))
    assert stage.succeed(pg, stage.Placed(job.id, holder, 1))
    (table,) = places(pg).values()
    pg_clock.advance(2 * HOUR)
    young = ended(pg)  # its period has ended, but not two hours ago
    round_of(pg, keeping)
    assert set(places(pg)) == {job.id, young} and table in tables(pg)

    pg_clock.advance(HOUR)
    round_of(pg, keeping)
    assert set(places(pg)) == {young} and table not in tables(pg)
    for name in ("job_events", "job_logs", "job_progress"):
        assert not stage.rows(pg, "SELECT job_id FROM {" + name + "}")
    assert all(each.stage == "attached" for each in pg.run(periods()))
    assert sum(each.is_ahead for each in pg.run(periods())) == 2 * 2


STOPS = ["closed", "taken", "detaching", "detached", "gone"]


@pytest.mark.parametrize("stop", STOPS)
def test_who_comes_next_ends_what_was_broken_off(
    pg: PostgresEngine, pg_clock: PostgresClock, keeping: MaintenanceChore, stop: str
) -> None:
    ended(pg)
    (table,) = places(pg).values()
    number = int(table.rsplit("_", 1)[1])
    pg_clock.advance(LATER)
    assert pg.run(close_periods(State.SUCCEEDED, age_s=2 * HOUR)) == 1
    if stop != "closed":
        assert pg.run(take_period()) is not None
    if stop == "detaching":
        with Report(pg), pytest.raises(Busy):
            pg.run(detach_period(table))
    elif stop in ("detached", "gone"):
        pg.run(detach_period(table))
    if stop == "gone":
        query(pg, f"DROP TABLE fencerow.{table}")
    (found,) = [each for each in pg.run(periods()) if each.id == number]
    assert found.stage == {"closed": "attached", "taken": "attached"}.get(stop, stop)

    pg_clock.advance(61)  # who had taken it is dead
    round_of(pg, keeping)
    assert table not in tables(pg) and number not in {each.id for each in pg.run(periods())}


class Report:
    """A report: a transaction that reads the finished jobs and stays open."""

    def __init__(self, pg: PostgresEngine) -> None:
        self._connection = psycopg.connect(pg.conninfo)

    def __enter__(self) -> psycopg.Connection[tuple[object, ...]]:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self._connection.execute("SELECT count(*) FROM fencerow.finished_jobs").fetchone()
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class Ending(threading.Thread):
    """Ends one job after another, and counts them."""

    def __init__(self, conninfo: str) -> None:
        super().__init__()
        self._engine = postgres_engine(conninfo)
        self._holder = register(self._engine, lease_s=1e6)
        self._over = threading.Event()
        self.count, self.failure = 0, None

    def run(self) -> None:
        while not self._over.is_set():
            submit(self._engine, new_job())
            (job,) = claim(self._engine, self._holder)
            assert self._engine.run(store.succeed([Success(job.id, job.attempt, "1")], holder=self._holder))
            self.count += 1

    def __enter__(self) -> Ending:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        self._engine.close()


def ahead(pg: PostgresEngine) -> int:
    return sum(each.is_ahead for each in pg.run(periods()) if each.state is State.SUCCEEDED)


def test_a_report_that_stays_open_delays_the_end_of_a_period_and_nobody_else(
    pg: PostgresEngine, pg_clock: PostgresClock, keeping: MaintenanceChore
) -> None:
    ended(pg)
    (table,) = places(pg).values()
    pg_clock.advance(LATER)
    with Report(pg) as report, Ending(pg.conninfo) as ending:
        for _ in range(2):  # the first marks the partition, the second tries to finish that
            round_of(pg, keeping)
        assert table in tables(pg)
        # The report goes on seeing what it saw, and everybody else goes on.
        assert report.execute("SELECT count(*) FROM fencerow.finished_jobs").fetchone() == (1,)
        assert pg.run(make_period(State.FAILED, length_s=HOUR, lock=1)) is None
        # However long it takes: new periods are made, and jobs end into them.
        pg_clock.advance(HOUR)
        for _ in range(10):  # on a busy machine one that finds the lock taken leaves it to the next round
            round_of(pg, keeping)
            if ahead(pg) == 2:
                break
        assert ahead(pg) == 2
        pg_clock.advance(11)
        known = {each.partition: each for each in pg.run(periods())}
        assert known[table].stage == "detaching"
        (current,) = [
            each.partition
            for each in known.values()
            if each.state is State.SUCCEEDED and each.starts_us <= each.now_us < each.ends_us
        ]
        while current not in places(pg).values():
            assert ending.is_alive(), "nobody ends jobs any more"
            time.sleep(0.01)
        so_far = ending.count
        while ending.count < so_far + 50:
            assert ending.is_alive(), "nobody ends jobs any more"
            time.sleep(0.01)
        assert report.execute("SELECT count(*) FROM fencerow.finished_jobs").fetchone() == (1,)
    round_of(pg, keeping)
    assert table not in tables(pg)


def test_a_plain_drop_of_an_attached_table_makes_everybody_wait(
    pg: PostgresEngine, pg_clock: PostgresClock, keeping: MaintenanceChore
) -> None:
    """The control: what the detachment is for."""
    ended(pg)
    (table,) = places(pg).values()
    job = running(pg, holder := register(pg))
    with Report(pg), psycopg.connect(pg.conninfo) as other, ThreadPoolExecutor(1) as pool:
        dropping = pool.submit(other.execute, f"DROP TABLE fencerow.{table}".encode())
        waits(pg, "mode = 'AccessExclusiveLock'")
        with psycopg.connect(pg.conninfo) as acker:
            (text,) = pg.queries["succeed"].statements
            acker.execute("SET LOCAL lock_timeout = '200ms'")
            outcome = f'[{{"id":"{job.id}","attempt":1,"result":"1"}}]'
            with pytest.raises(psycopg.errors.LockNotAvailable):
                given = {"outcomes": outcome, "holder": holder, "awaited_s": 1.0, "alone": 1}
                acker.execute(pyformat(text).encode(), given)
        other.cancel_safe()
        assert isinstance(dropping.exception(), psycopg.errors.QueryCanceled)


# --- the guards ------------------------------------------------------------------------------------


def test_a_closed_period_takes_nothing_in(
    pg: PostgresEngine, pg_clock: PostgresClock, keeping: MaintenanceChore
) -> None:
    """The clock went back after a period was closed: a statement that looked for its table would fail for ever."""
    pg_clock.advance(LATER)
    assert pg.run(close_periods(State.SUCCEEDED, age_s=2 * HOUR)) == 1
    pg_clock.advance(-LATER)
    taken = pg.run(take_period())
    assert taken is not None
    pg.run(detach_period(taken.partition))
    job = ended(pg)
    assert places(pg)[job] == KEPT

    pg.queries = pg.queries.altered("succeed", "AND period.closed_at IS NULL", "")
    with pytest.raises(Busy, match="no partition"):
        ended(pg)


@pytest.mark.parametrize(
    "by_hand", ["DROP TABLE fencerow.{0}", "ALTER TABLE fencerow.finished_jobs DETACH PARTITION fencerow.{0}"]
)
def test_a_table_that_somebody_removed_is_waited_out(
    pg: PostgresEngine, keeping: MaintenanceChore, by_hand: str
) -> None:
    ended(pg)
    (table,) = places(pg).values()
    query(pg, by_hand.format(table))
    job = running(pg, holder := register(pg))
    success = store.succeed([Success(job.id, job.attempt, "1")], holder=holder)
    with pytest.raises(Busy, match="no table of its period"):
        pg.run(success)
    round_of(pg, keeping)
    assert len(pg.run(success)) == 1 and places(pg)[job.id] == KEPT
    assert (table in tables(pg)) is ("DETACH" in by_hand), "it is no longer ours to drop"


def test_a_statement_that_saw_a_period_open_still_finds_its_table(
    pg: PostgresEngine, pg_clock: PostgresClock, keeping: MaintenanceChore
) -> None:
    """Its snapshot is older than the closing, its insert younger than the mark of the detachment."""
    job = running(pg, holder := register(pg))
    slow = postgres_engine(pg.conninfo)
    slow.queries = slow.queries.altered(
        "succeed",
        "job.state IS NOT DISTINCT FROM 'running'",
        "job.state = 'running' AND pg_advisory_xact_lock_shared(1) IS NOT NULL",
    )
    with psycopg.connect(pg.conninfo) as gate, ThreadPoolExecutor(2) as pool:
        gate.execute("SELECT pg_advisory_xact_lock(1)")
        success = store.succeed([Success(job.id, job.attempt, "1")], holder=holder)
        ending = pool.submit(slow.run, success)
        waits(pg, "locktype = 'advisory'")
        assert pg.run(close_periods(State.SUCCEEDED, age_s=-1e9)) > 0
        period = pg.run(take_period())
        assert period is not None
        detaching = pool.submit(pg.run, detach_period(period.partition))
        waits(pg, "locktype = 'virtualxid'")
        gate.rollback()
        assert len(ending.result(60)) == 1
        detaching.result(60)
    slow.close()
    assert query(pg, f"SELECT count(*) FROM fencerow.{period.partition}") == [(1,)]


def waits(pg: PostgresEngine, what: str) -> None:
    """Until somebody waits for such a lock."""
    while not query(pg, f"SELECT 1 FROM pg_locks WHERE {what} AND NOT granted"):
        pass


def test_a_period_never_begins_at_once(pg: PostgresEngine) -> None:
    made = pg.run(make_period(State.SUCCEEDED, length_s=HOUR, lock=7))
    assert made is not None and made.starts_us > made.now_us + 5_000_000


def test_a_lookup_descends_one_index_of_each_table(pg: PostgresEngine, keeping: MaintenanceChore) -> None:
    with psycopg.connect(pg.conninfo) as connection:
        connection.execute("SET LOCAL enable_seqscan = off")
        for name in ("outcomes", "read_fences", "existing", "read"):
            (text,) = pg.queries[name].statements
            row = connection.execute(f"EXPLAIN {pyformat(text)}".encode(), {"ids": [new_job().id]}).fetchall()
            plan = "\n".join(str(line[0]) for line in row)
            for table in (*tables(pg), KEPT):
                assert f" {table} " in plan, plan
            assert "Seq Scan on finished" not in plan, plan
