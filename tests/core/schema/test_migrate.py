"""The schema: many starters, crashes in the middle, ledgers that are not ours, several apps in one database."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import (
    Busy,
    ConfigError,
    SchemaMissing,
    SchemaTampered,
    SchemaTooNew,
    SchemaTooOld,
)
from fencerow.operators import looking
from fencerow.testing.postgres import PostgresServer
from tests.core.schema import starter
from tests.core.schema.starter import engine_of
from tests.core.store.stage import rows
from tests.kit.forking import context
from tests.kit.jobs import AnyEngine, submit
from tests.kit.pace import PATIENCE_S

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Fresh:
    """A database in which nothing was ever made."""

    dialect: str
    target: str

    def engine(self) -> AnyEngine:
        return engine_of(self.dialect, self.target)

    def starter(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.core.schema.starter", self.dialect, self.target]
        path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        return subprocess.Popen(command, env=path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(params=["sqlite", "postgres"])
def fresh(request: pytest.FixtureRequest) -> Fresh:
    name = "sqlite_path" if request.param == "sqlite" else "empty_postgres_url"
    return Fresh(request.param, str(request.getfixturevalue(name)))


@pytest.fixture
def empty(fresh: Fresh) -> Iterator[AnyEngine]:
    engine = fresh.engine()
    yield engine
    engine.close()


def ledger(engine: AnyEngine) -> list[dict[str, object]]:
    return rows(engine, "SELECT * FROM {schema_migrations} ORDER BY version")


def versions(engine: AnyEngine) -> list[int]:
    """The migrations that this code knows."""
    return [each.version for each in store.known_migrations(engine.dialect)]


def note(engine: AnyEngine, version: int, compatible_from: int) -> None:
    """As a newer Fencerow would have left it."""
    rows(
        engine,
        "INSERT INTO {schema_migrations} (version, name, checksum, compatible_from)"
        f" VALUES ({version}, 'later', 'x', {compatible_from})",
    )


@pytest.mark.prove
def test_many_processes_that_start_at_once_migrate_once(fresh: Fresh, empty: AnyEngine) -> None:
    starters = [fresh.starter() for _ in range(8)]
    told = [each.communicate(timeout=60) for each in starters]
    assert [each.returncode for each in starters] == [0] * 8, told
    assert sum(int(out) for out, _ in told) == len(versions(empty))
    assert [each["version"] for each in ledger(empty)] == versions(empty)
    assert {each["applied_by"] for each in ledger(empty)} == {"starter"}


def objects(engine: AnyEngine) -> int:
    """How many tables, views and indexes of ours there are, the ledger aside."""
    if engine.dialect == "sqlite":
        text = "SELECT count(*) AS n FROM sqlite_master WHERE name LIKE 'fencerow%%' AND name NOT LIKE '%%migrations'"
        text = text.replace("%%", "%")
    else:
        text = (
            "SELECT count(*) AS n FROM pg_class WHERE relnamespace = 'fencerow'::regnamespace"
            " AND relname NOT LIKE 'schema_migrations%'"
        )
    (row,) = rows(engine, text)
    assert isinstance(row["n"], int)
    return row["n"]


@pytest.mark.parametrize(
    ("statement", "count", "committed"),
    [
        ("try_lock", 1, False),
        ("make_ledger", 1, False),
        ("schema_0001_initial", 1, False),
        ("note_migration", 1, False),
        ("try_lock", 2, True),  # on the way to the next migration
    ],
)
def test_a_crash_leaves_whole_steps(
    fresh: Fresh, empty: AnyEngine, statement: str, count: int, committed: bool
) -> None:
    killed = context.Process(target=starter.main, args=(fresh.dialect, fresh.target, statement, str(count)))
    killed.start()
    killed.join(PATIENCE_S)
    assert killed.exitcode == -signal.SIGKILL

    assert (objects(empty) > 0) is committed
    if not committed:
        with pytest.raises(SchemaMissing):
            store.check_schema(empty)
    assert len(store.migrate(empty)) == len(versions(empty)) - committed
    assert [each["version"] for each in ledger(empty)] == versions(empty)
    submit(empty)


def test_migrating_again_does_nothing(engine: AnyEngine) -> None:
    before = ledger(engine)
    assert store.migrate(engine) == []
    assert ledger(engine) == before
    assert [each.version for each in store.check_schema(engine)] == versions(engine)


def test_a_schema_that_was_never_made_is_missing(empty: AnyEngine) -> None:
    with pytest.raises(SchemaMissing, match="fencerow migrate"):
        store.check_schema(empty)
    with pytest.raises(SchemaMissing):
        empty.run(looking.counts())


def test_another_checksum_is_not_our_schema(engine: AnyEngine) -> None:
    rows(engine, "UPDATE {schema_migrations} SET checksum = 'abc'")
    for attempt in (store.check_schema, store.migrate):
        with pytest.raises(SchemaTampered, match="abc"):
            attempt(engine)


def test_a_newer_schema_is_worked_with_only_if_it_says_so(engine: AnyEngine) -> None:
    note(engine, 90, compatible_from=1)
    assert [each.version for each in store.check_schema(engine)] == [*versions(engine), 90]
    assert store.migrate(engine) == []
    submit(engine)

    note(engine, 91, compatible_from=90)
    for attempt in (store.check_schema, store.migrate):
        with pytest.raises(SchemaTooNew, match="migration 91"):
            attempt(engine)


def test_an_older_schema_is_named_and_migrated(engine: AnyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    known = store.known_migrations(engine.dialect)
    another = type(known[0])(90, "schema_0090_another", "", 1, "0" * 64)
    monkeypatch.setattr("fencerow.core.schema.migrate.known_migrations", lambda dialect: [*known, another])
    with pytest.raises(SchemaTooOld, match=rf"(?s)migration {known[-1].version}.*migration 90"):
        store.check_schema(engine)


def test_a_waiting_migrator_gives_up_in_time_and_says_so(pg: PostgresEngine) -> None:
    from fencerow.core.schema.migrate import ledger_name, lock_number

    with psycopg.connect(pg.conninfo) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [lock_number(ledger_name(pg))])
        with pytest.raises(Busy, match="another process is migrating"):
            store.migrate(pg, wait_s=0.1)
    assert store.migrate(pg) == []


# --- several apps in one database --------------------------------------------------------------------


def test_two_apps_live_in_one_file_under_their_prefixes(sqlite_path: Path) -> None:
    one = SqliteEngine(sqlite_path, store.sqlite_queries("shop_"), prefix="shop_")
    two = SqliteEngine(sqlite_path, store.sqlite_queries("blog_"), prefix="blog_")
    live_apart(one, two)


def test_two_apps_live_in_one_database_under_their_schemas(server: PostgresServer) -> None:
    urls = [
        server.create_role_and_schema(role=f"{name}_role", database="shared", schema=name)
        for name in ("shop", "blog")
    ]
    one = PostgresEngine(urls[0], store.postgres_queries("shop"), schema="shop")
    two = PostgresEngine(urls[1], store.postgres_queries("blog"), schema="blog")
    try:
        live_apart(one, two)
        assert one.channel != two.channel
        with psycopg.connect(urls[0]) as shop, pytest.raises(psycopg.errors.InsufficientPrivilege):
            shop.execute("SELECT * FROM blog.jobs")
    finally:
        server.drop_database("shared")


def live_apart(one: AnyEngine, two: AnyEngine) -> None:
    """Both are migrated by roles that own their schema and nothing else, and see only what is theirs."""
    for engine in (one, two):
        assert len(store.migrate(engine)) == len(versions(engine))
    (job_id,) = submit(one)
    assert two.run(store.existing([job_id])) == set()
    assert one.run(store.existing([job_id])) == {job_id}
    for engine in (one, two):
        store.check_schema(engine)
        engine.close()


@pytest.mark.parametrize("name", ["Shop", "a-b", "1a", 'x"; DROP', "", "a" * 50])
@pytest.mark.parametrize("build", [store.postgres_queries, store.sqlite_queries])
def test_a_name_that_would_need_quoting_is_refused(build: Callable[[str], object], name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(repr(name))):
        build(name)
