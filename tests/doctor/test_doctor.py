"""doctor: a healthy database passes, and each fault that it knows is seen when it is there."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from fencerow.config import Config
from fencerow.core.config import CoreConfig
from fencerow.core.errors import Busy, DatabaseError, StorageFull, Unavailable
from fencerow.core.finding import Finding, ok
from fencerow.core.model import worker
from fencerow.core.model.state import State
from fencerow.core.model.wanted import Stated
from fencerow.core.store import store
from fencerow.core.wing import Check
from fencerow.db import sqlite_file
from fencerow.db.engine import Engine
from fencerow.db.filesystem import Mount
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.doctor import backlog, on_postgres, on_sqlite
from fencerow.doctor.examine import examine, with_queries
from fencerow.doctor.shape import examine_shape, expected, shape_of
from fencerow.operators.looking import Count
from fencerow.operators.queues import pause_queue, paused_queues
from fencerow.testing.clock import DatabaseClock
from fencerow.testing.postgres import PostgresServer
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli, Result
from tests.kit import jobs
from tests.kit.servers import CopiedServer

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine


def levels(result: Result) -> dict[str, str]:
    """Each check and the worst that was found under its name."""
    order = ("ok", "info", "warn", "fail")
    found: dict[str, str] = {}
    for each in result.json["findings"]:
        name, level = each["name"], each["level"]
        found[name] = max(found.get(name, "ok"), level, key=order.index)
        assert (each["fix"] is not None) or level in ("ok", "info")
    return found


def finding(result: Result, name: str) -> dict[str, Any]:
    return next(each for each in result.json["findings"] if each["name"] == name and each["level"] != "ok")


def test_a_healthy_database_passes(cli: Cli, url: str, engine: AnyEngine) -> None:
    result = cli("doctor", "--json")

    assert result.code == 0
    assert result.json["ok"] is True
    assert "fail" not in levels(result).values()
    assert "warn" not in levels(result).values()


def test_a_person_reads_what_to_do(cli: Cli, url: str, engine: AnyEngine) -> None:
    engine.run(pause_queue("mail", actor="ada", reason="\x1bmoving"))

    result = cli("doctor")

    assert "mail is paused by ada: \\x1bmoving" in result.out
    assert "paused queue: `fencerow queues resume mail`" in result.out
    assert "\x1b" not in result.out
    table, _, below = result.out.partition("\n\n")
    assert re.match(r"paused queue +warn", table.splitlines()[-1]), "what is wrong stands last"
    assert below.splitlines()[-1] == "1 warning"


def test_the_shape_that_doctor_compares_with_is_what_the_migrations_make(engine: AnyEngine) -> None:
    with_queries(engine)

    assert shape_of(engine) == expected(engine.dialect), "run tools/shape.py"


def test_an_index_that_was_dropped_by_hand_is_seen(cli: Cli, url: str, engine: AnyEngine) -> None:
    index = "fencerow_jobs_lane" if isinstance(engine, SqliteEngine) else "fencerow.jobs_lane"
    with engine.session() as session:
        session.connection.execute(f"DROP INDEX {index}")

    found = finding(cli("doctor", "--json"), "tables")

    assert found["level"] == "fail"
    assert "jobs_lane is missing" in found["found"]
    assert "CREATE INDEX" in found["fix"]


@pytest.mark.parametrize(
    ("dropped", "what"),
    [
        # Its index is not told: made by itself it would have the constraint's name, and stand in its way.
        ("ALTER TABLE fencerow.jobs DROP CONSTRAINT jobs_state", "constraint jobs.jobs_state"),
        ("DROP INDEX fencerow.jobs_lane", "index jobs_lane"),
    ],
)
def test_what_was_dropped_by_hand_is_made_again_word_for_word(
    pg: PostgresEngine, dropped: str, what: str
) -> None:
    with_queries(pg)
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute(dropped.encode())
        (found,) = examine_shape(pg)
        connection.execute(str(found.fix).partition(": ")[2].encode())

    assert (found.level, found.found) == ("fail", f"{what} is missing")
    assert shape_of(pg) == expected("postgres")


def test_a_function_that_an_index_goes_by_is_seen_when_it_says_something_else(pg: PostgresEngine) -> None:
    with_queries(pg)
    with pg.session() as session:
        session.connection.execute(
            "CREATE OR REPLACE FUNCTION fencerow.lane(job fencerow.jobs) RETURNS fencerow.job_lane"
            " LANGUAGE sql IMMUTABLE AS $$SELECT CAST('' AS fencerow.job_lane)$$"
        )

    (found,) = examine_shape(pg)

    assert found.found.startswith("function lane was changed: ")
    assert "fencerow sql" in str(found.fix)


def test_an_index_that_was_not_built_to_its_end_is_seen_and_mended(
    cli: Cli, server: PostgresServer, postgres_url: str, monkeypatch: Any
) -> None:
    monkeypatch.setenv("FENCEROW_URL", postgres_url)
    database = postgres_url.split("@/")[1].split("?")[0]
    with server.connect(database) as superuser:
        superuser.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'fencerow.jobs_holder'::regclass"
        )

    found = finding(cli("doctor", "--json"), "tables")
    assert "jobs_holder was not built to its end" in found["found"]
    assert "fencerow migrate" in found["fix"]
    assert (
        cli("migrate", "--plan").out == "index jobs_holder was not built to its end: would be built again\n"
    )
    assert "building jobs_holder" in cli("migrate").err
    assert levels(cli("doctor", "--json"))["tables"] == "ok"


def test_a_constraint_that_is_not_ours_any_more_is_seen(
    cli: Cli, postgres_url: str, monkeypatch: Any
) -> None:
    monkeypatch.setenv("FENCEROW_URL", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER DOMAIN fencerow.job_priority DROP CONSTRAINT job_priority")
        connection.execute(
            "ALTER DOMAIN fencerow.job_priority ADD CONSTRAINT job_priority CHECK (VALUE < 1000)"
        )

    found = finding(cli("doctor", "--json"), "tables")

    assert "job_priority was changed" in found["found"]
    assert "100" in found["fix"]


@pytest.mark.parametrize("schema", ["jobs", "order"])  # the name of a table, and a word of SQL
def test_tables_of_another_name_have_the_same_shape(
    sqlite_path: Path, server: PostgresServer, empty_postgres_url: str, schema: str
) -> None:
    lite = SqliteEngine(sqlite_path, store.sqlite_queries("jobs_"), prefix="jobs_")
    with server.connect(str(psycopg.conninfo.conninfo_to_dict(empty_postgres_url)["dbname"])) as owner:
        owner.execute(f'CREATE SCHEMA "{schema}" AUTHORIZATION app'.encode())
    pg = PostgresEngine(empty_postgres_url, store.postgres_queries(schema), schema=schema)
    for engine in (lite, pg):
        store.migrate(engine)
        with_queries(engine)
        assert shape_of(engine) == expected(engine.dialect)
        engine.close()


def test_what_cannot_be_reached_fails(cli: Cli) -> None:
    for url in ("postgresql://u@127.0.0.1:1/db", "sqlite:///not-there.db"):
        result = cli("doctor", "--json", "--url", url)

        assert result.code == 1
        assert levels(result) == {"reachable": "fail"}


def test_missing_tables_fail(cli: Cli, empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_URL", empty_postgres_url)

    result = cli("doctor", "--json")

    assert (result.code, levels(result)["schema"]) == (1, "fail")
    assert "privileges" not in levels(result), "there is nothing that a role could work with"
    assert cli("doctor").out.splitlines()[-1] == "1 failure"


def test_a_name_nobody_knows_and_a_queue_nobody_serves_are_seen(
    cli: Cli, url: str, engine: AnyEngine
) -> None:
    assert engine.run(
        store.register(
            holder=jobs.new_job().id,
            name="w",
            host="h",
            pid=1,
            info='{"queues":{"mail":3},"names":["send"],"slots":3}',
            lease_s=30.0,
        )
    )
    jobs.submit(engine, jobs.new_job(name="unknown"), jobs.new_job(queue="nowhere"))

    found = levels(cli("doctor", "--json"))

    assert (found["unknown job"], found["unserved queue"], found["workers"]) == ("warn", "warn", "ok")


def test_a_name_that_only_workers_of_other_queues_know_is_seen(cli: Cli, url: str, engine: AnyEngine) -> None:
    for queue, name in (("mail", "send"), ("other", "known")):
        info = msgspec.json.encode({"queues": {queue: 3}, "names": [name], "slots": 3}).decode()
        assert engine.run(
            store.register(holder=jobs.new_job().id, name="w", host="h", pid=1, info=info, lease_s=30.0)
        )
    jobs.submit(engine, jobs.new_job(name="send"), jobs.new_job(name="known"), jobs.new_job(name="known"))

    found = finding(cli("doctor", "--json"), "unknown job")

    assert "2 queued jobs in queue mail are named known" in found["found"]
    assert "add mail to -Q" in found["fix"]


def test_a_worker_is_not_asked_for_each_count_what_it_knows(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = '{"queues":{"mail":3},"names":["send"],"slots":3}'
    engine.run(store.register(holder=jobs.new_job().id, name="w", host="h", pid=1, info=info, lease_s=30.0))
    counts = [Count("mail", "send", State.QUEUED, 1, 0, 0)] * 50
    asked, named = list[str](), worker._named

    def counted(info: Any, what: str) -> frozenset[str] | None:
        asked.append(what)
        return named(info, what)

    monkeypatch.setattr(worker, "_named", counted)

    assert not list(backlog._unknown_names(backlog.living(engine), counts))
    assert 2 <= len(asked) < 10


def test_jobs_without_a_worker_and_past_their_time_are_seen(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "LATE_S", -1.0)
    jobs.submit(engine)

    found = levels(cli("doctor", "--json"))

    assert (found["workers"], found["backlog"]) == ("warn", "warn")


def test_of_what_is_alike_a_few_are_told_and_how_many_there_are(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "LATE_S", -1.0)
    engine.run(
        store.register(
            holder=jobs.new_job().id,
            name="w",
            host="h",
            pid=1,
            info='{"queues":["mail"],"names":["send"]}',
            lease_s=30.0,
        )
    )
    jobs.submit(engine, *(jobs.new_job(queue=f"q{n}") for n in range(7)))
    for n in range(7):
        engine.run(pause_queue(f"q{n}", actor="ada"))

    found = cli("doctor", "--json").json["findings"]

    told = Counter(each["name"] for each in found)
    assert (told["paused queue"], told["backlog"], told["unserved queue"]) == (6, 6, 1)
    assert "2 queues are paused beside these" in [each["found"] for each in found]
    assert "no living worker serves q0, q1, q2, q3, q4 and 2 more" in [each["found"] for each in found]


def test_nothing_is_called_unserved_where_not_all_workers_were_looked_at(
    engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_queries(engine)
    for queue in ("other", "mail"):
        info = f'{{"queues":["{queue}"],"names":["send"]}}'
        engine.run(
            store.register(holder=jobs.new_job().id, name="w", host="h", pid=1, info=info, lease_s=30.0)
        )
    jobs.submit(engine, jobs.new_job(queue="other"), jobs.new_job(queue="other", affinity="gpu"))
    monkeypatch.setattr(backlog, "WORKERS_MAX", 1)

    found = [each.name for each in backlog.examine_backlog(engine, CoreConfig())]

    assert not {"unknown job", "unserved queue", "label that nobody carries"} & set(found)


@pytest.mark.parametrize(
    ("error", "stops_on"), [(Unavailable, {"pg", "sqlite"}), (Busy, {"sqlite"}), (StorageFull, set())]
)
def test_nothing_is_asked_of_a_database_that_does_not_answer_any_more(
    engine: AnyEngine, url: str, error: type[DatabaseError], stops_on: set[str]
) -> None:
    asked: list[str] = []

    def gone(_engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
        raise error("it is gone", "refused", "start it")

    def after(_engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
        asked.append("after")
        yield ok("after", "well")

    found = examine(Config(url=url), [Check("gone", gone), Check("after", after)])

    stops = ("pg" if isinstance(engine, PostgresEngine) else "sqlite") in stops_on
    assert asked == ([] if stops else ["after"])
    assert found[-1].name == ("other checks" if stops else "after")


def test_what_to_do_is_copied_into_a_shell_whatever_the_name_is(
    cli: Cli, url: str, engine: AnyEngine
) -> None:
    name = "-a; $(reboot) `x` 'y'"
    engine.run(pause_queue(name, actor="ada"))

    fix = finding(cli("doctor", "--json"), "paused queue")["fix"]

    _, *words = shlex.split(fix.removeprefix("`").removesuffix("` when it may go on"))
    assert cli(*words).code == 0
    assert engine.run(paused_queues()) == []


def test_a_worker_that_renews_late_is_seen(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.register(engine)
    assert levels(cli("doctor", "--json"))["workers"] == "ok"
    monkeypatch.setattr(backlog, "LATE_PART", -1.0)

    assert "half a lease" in finding(cli("doctor", "--json"), "workers")["found"]


def test_jobs_of_the_dead_fail_when_no_sweep_took_them(cli: Cli, url: str, engine: AnyEngine) -> None:
    jobs.running(engine, jobs.register(engine, lease_s=-10.0))
    soon = cli("doctor", "--json")
    jobs.running(engine, jobs.register(engine, lease_s=-1000.0))
    late = cli("doctor", "--json")

    assert (levels(soon)["leases"], soon.code) == ("info", 0)
    assert (levels(late)["leases"], late.code) == ("fail", 1)
    assert "2 running jobs" in finding(late, "leases")["found"]


# --- PostgreSQL ---------------------------------------------------------------------------------


@pytest.fixture
def database(server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a fresh database that the command works on."""
    monkeypatch.setenv("FENCEROW_URL", postgres_url)
    return postgres_url.split("@/")[1].split("?")[0]


@pytest.mark.parametrize(
    ("setting", "name", "level"),
    [
        ("synchronous_commit = off", "synchronous_commit", "fail"),
        ("default_transaction_read_only = on", "writable", "fail"),
    ],
)
def test_dangerous_settings_are_seen(
    cli: Cli, server: PostgresServer, database: str, setting: str, name: str, level: str
) -> None:
    with server.connect() as connection:
        connection.execute(f"ALTER DATABASE {database} SET {setting}".encode())

    result = cli("doctor", "--json")

    assert (levels(result)[name], result.code) == (level, 1)


def test_fsync_off_fails(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with CopiedServer(fast=True, settings={"fsync": "off", "full_page_writes": "off"}) as careless:
        monkeypatch.setenv("FENCEROW_URL", careless.conninfo())
        assert cli("migrate").code == 0
        found = levels(cli("doctor", "--json"))

    assert (found["fsync"], found["full_page_writes"], found["role"]) == ("fail", "warn", "warn")


def test_a_snapshot_that_holds_the_horizon_is_seen_with_who_holds_it(
    cli: Cli, database: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_postgres, "SNAPSHOT_WARN_S", -1.0)
    with psycopg.connect(postgres_url, application_name="report") as forgotten:
        forgotten.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        pid = forgotten.execute("SELECT pg_backend_pid()").fetchall()[0][0]
        found = finding(cli("doctor", "--json"), "old snapshot")

        assert "report" in found["found"]
        assert f"pg_terminate_backend({pid})" in found["fix"]


def test_a_pooler_through_which_listen_hears_nothing_is_seen(
    cli: Cli, database: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LISTEN on another database is what a pooler in transaction mode looks like: no error, and silence."""
    monkeypatch.setattr(on_postgres, "HEARD_S", 0.3)
    monkeypatch.setenv("FENCEROW_LISTEN_URL", server.conninfo("postgres", "app"))

    result = cli("doctor", "--json")

    assert (levels(result)["listen"], result.code) == ("warn", 0)
    assert "FENCEROW_LISTEN_URL" in finding(result, "listen")["fix"]


def test_a_listen_url_that_leads_nowhere_is_seen(
    cli: Cli, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_LISTEN_URL", "postgresql://app@127.0.0.1:1/x")
    monkeypatch.setenv("FENCEROW_CONNECT_TIMEOUT_S", "0.5")

    assert levels(cli("doctor", "--json"))["listen"] == "warn"


def test_a_clock_apart_is_seen() -> None:
    second = 1_000_000

    assert on_postgres.clock(0, 0, 0.0).level == "ok"
    assert on_postgres.clock(3 * second, 0, 0.0).level == "warn"
    assert on_postgres.clock(-60 * second, 0, 0.0).level == "fail"
    assert on_postgres.clock(3 * second, 0, 2.5).level == "ok", "a slow answer proves no skew"


def test_a_clock_that_went_back_is_seen(engine: AnyEngine, clock: DatabaseClock) -> None:
    stated = msgspec.json.encode(Stated(version=0, slot_groups=(), clock_behind_s=3600.0)).decode()
    alive = [jobs.register(engine), jobs.register(engine)]
    before = _clock_findings(engine)
    clock.advance(-1800)
    rows_ahead = _clock_findings(engine)
    assert engine.run(store.renew(holder=alive[0], stated=stated))
    (seen,) = _clock_findings(engine)

    assert before == []
    assert [each.level for each in rows_ahead] == ["warn"]
    assert "went back by 1800 s; 0 living workers continue" in rows_ahead[0].found
    assert "went back by 3600 s; 1 living worker continues" in seen.found


def _clock_findings(engine: AnyEngine) -> list[Finding]:
    alive = engine.run(store.list_workers())
    return list(backlog._clock_gone_back(alive))


def test_row_security_that_holds_for_the_role_is_seen(
    cli: Cli, database: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "row security" not in levels(cli("doctor", "--json"))
    with server.connect(database) as connection:
        connection.execute("ALTER TABLE fencerow.jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")

    found = finding(cli("doctor", "--json"), "row security")

    assert (found["level"], found["found"]) == ("warn", "policies choose the rows that app sees of jobs")
    assert "BYPASSRLS" in found["fix"]


def test_missing_privileges_are_seen(
    cli: Cli, database: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.connect(database) as connection:
        connection.execute("REVOKE DELETE ON fencerow.keys FROM app")
        connection.execute("REVOKE INSERT ON fencerow.jobs, fencerow.keys FROM app")
        connection.execute("REVOKE UPDATE ON ALL TABLES IN SCHEMA fencerow FROM app")
        connection.execute("REVOKE ALL ON ALL SEQUENCES IN SCHEMA fencerow FROM app")

    found = finding(cli("doctor", "--json"), "privileges")

    assert found["found"].startswith("the role app lacks ")
    assert re.search(r"(lacks|;) INSERT, UPDATE on jobs", found["found"])
    assert "INSERT, UPDATE, DELETE on keys" in found["found"]
    assert "; SELECT, UPDATE on repeats_until" in found["found"]  # of those of columns nobody needs anything
    assert re.search(r"UPDATE on (\w+, ){3}\w+ and \d+ more", found["found"]), "not each table by itself"


# --- SQLite -------------------------------------------------------------------------------------


@pytest.fixture
def file(lite: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A migrated file that the command works on."""
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")
    return lite.path


def test_wal_with_the_fault_fails(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_sqlite._journal("truncate").level == "ok"
    monkeypatch.setattr(on_sqlite, "wal_is_safe", lambda _: False)

    assert on_sqlite._journal("wal").level == "fail"
    assert levels(cli("doctor", "--json"))["version"] == "info"


def test_the_versions_with_the_wal_reset_fault_are_those_of_sqlites_own_page() -> None:
    fixed = [(3, 44, 6), (3, 50, 7), (3, 51, 3), (3, 52, 0), (3, 53, 0)]
    faulty = [(3, 40, 1), (3, 44, 5), (3, 45, 3), (3, 50, 6), (3, 51, 2)]

    assert [sqlite_file.wal_is_safe(version) for version in fixed] == [True] * 5
    assert [sqlite_file.wal_is_safe(version) for version in faulty] == [False] * 5


def test_a_damaged_file_fails(cli: Cli, lite: SqliteEngine, file: Path) -> None:
    for _ in range(20):
        jobs.submit(lite, jobs.new_job(queue="q" * 100))
    lite.close()
    text = bytearray(file.read_bytes())
    root = 4096 * 2
    text[root : root + 64] = b"\xff" * 64
    file.write_bytes(text)

    result = cli("doctor", "--json")

    assert result.code == 1
    assert "fail" in levels(result).values()


def test_a_full_disk_and_a_shared_folder_are_seen(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_sqlite, "ROOM_FAIL_BYTES", 1 << 60)
    monkeypatch.setattr(on_sqlite, "mount_of", lambda _: Mount("/", "9p"))

    found = levels(cli("doctor", "--json"))

    assert (found["room"], found["file system"]) == ("fail", "warn")


def test_a_file_that_everybody_may_write_is_seen(cli: Cli, file: Path) -> None:
    file.chmod(0o666)

    assert levels(cli("doctor", "--json"))["permissions"] == "warn"


def test_a_network_file_system_fails(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencerow.db.filesystem._mounted", lambda *_: [Mount("/", "nfs4")])

    result = cli("doctor", "--json")

    assert (result.code, levels(result)) == (1, {"reachable": "fail"})
    assert cli("jobs", "list").error == "FR-509"
