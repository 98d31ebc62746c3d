"""migrate brings the schema up; sql prints it, and the privileges it prints are enough and not too much."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import KeyClaim
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.errors import DatabaseError
from fencerow.testing.postgres import PostgresServer
from fencerow.unique.rules import UniqueClaim, UniqueRule
from tests.cli.conftest import Cli
from tests.kit import jobs
from tests.kit.asked import as_unique, submit_keyed
from tests.kit.terminal import terminal


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database without tables."""
    url = str(
        f"sqlite:///{tmp_path}/new.db"
        if request.param == "sqlite"
        else request.getfixturevalue("empty_postgres_url")
    )
    monkeypatch.setenv("FENCEROW_URL", url)
    return url


def test_a_plan_names_the_migrations_and_makes_nothing(cli: Cli, empty: str, tmp_path: Path) -> None:
    plan = cli("migrate", "--plan", "--json").json

    assert plan["plan"] is True
    assert [each["version"] for each in plan["migrations"]] == [
        each.version for each in store.known_migrations("sqlite")
    ]
    assert list(tmp_path.iterdir()) == []
    assert cli("jobs", "list").code == 4


def test_migrate_applies_each_step_once(cli: Cli, empty: str) -> None:
    first, second = cli("migrate", "--json").json, cli("migrate")

    assert first["migrations"] != []
    assert second.out == "the schema is up to date\n"
    assert cli("migrate", "--plan", "--json").json["migrations"] == []
    assert cli("jobs", "list").code == 0


def test_the_printed_sql_makes_the_sqlite_schema(cli: Cli) -> None:
    text = cli("sql", "--dialect", "sqlite", "--table-prefix", "my_").out

    connection = sqlite3.connect(":memory:")
    connection.executescript(text)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert {"my_jobs", "my_finished_jobs", "my_schema_migrations"} <= tables


def test_the_printed_sql_names_the_schema_everywhere(cli: Cli) -> None:
    text = cli("sql", "--schema", "shop").out

    code = "\n".join(line.split("--")[0] for line in text.splitlines())
    assert 'CREATE TABLE "shop".jobs' in text
    assert "fencerow." not in code


def test_the_privileges_are_printed_alone(cli: Cli) -> None:
    text = cli("sql", "--grants", "--worker-role", "runs").out

    assert 'TO "runs";' in text and "CREATE" not in text
    assert cli("sql", "--grants", "--dialect", "sqlite").error == "FR-201"


def test_migrate_makes_the_schema_where_the_role_may(
    cli: Cli, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.create_role_and_schema(database="bare", schema="elsewhere")
    monkeypatch.setenv("FENCEROW_URL", server.conninfo("bare", "app"))

    refused = cli("migrate")
    with server.connect("bare") as connection:
        connection.execute("GRANT CREATE ON DATABASE bare TO app")
    made = cli("migrate")
    server.drop_database("bare")

    assert (refused.code, refused.error) == (3, "FR-951")
    assert made.code == 0


# What is granted besides, by how its paragraph begins.
BESIDES = {"plain": (), "keyed": ("-- For keys",), "unique": ("-- For keys", "-- For unique")}


@pytest.fixture(params=BESIDES)
def besides(request: pytest.FixtureRequest) -> str:
    """Which jobs the submitter may submit besides plain ones."""
    return str(request.param)


@pytest.fixture
def granted(
    besides: str, cli: Cli, server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """URLs of a worker's and of a submitter's role, with exactly the privileges that `sql` prints."""
    database = postgres_url.split("@/")[1].split("?")[0]
    roles = {"worker": f"worker_{database}", "submit": f"submit_{database}"}
    monkeypatch.setenv("FENCEROW_URL", postgres_url)
    text = cli("sql", "--worker-role", roles["worker"], "--submit-role", roles["submit"]).out
    with server.connect(database) as connection:
        for role in roles.values():
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        for paragraph in text.split("\n\n"):
            for line in paragraph.splitlines():
                statement = line.removeprefix("-- ")
                wanted = statement == line or paragraph.startswith(BESIDES[besides])
                if wanted and statement.startswith(("GRANT", "REVOKE")):
                    owner.execute(statement.encode())
    yield {name: server.conninfo(database, role) for name, role in roles.items()}
    with server.connect(database) as connection:
        for role in roles.values():
            connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))


def engine_of(url: str) -> PostgresEngine:
    return PostgresEngine(url, store.postgres_queries())


def test_a_worker_can_work_with_what_it_was_granted_and_not_change_the_schema(
    cli: Cli, granted: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(granted["worker"])

    job = jobs.running(engine)
    engine.run(store.check_fence(job.id, holder=new_id(), attempt=1))
    engine.close()
    monkeypatch.setenv("FENCEROW_URL", granted["worker"])
    found = {each["name"]: each["level"] for each in cli("doctor", "--json").json["findings"]}

    assert found["privileges"] == "ok"
    assert cli("jobs", "list").code == 0
    with psycopg.connect(granted["worker"]) as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("DELETE FROM fencerow.schema_migrations")


def test_a_submitter_can_submit_with_what_it_was_granted_and_no_more(
    granted: dict[str, str], besides: str
) -> None:
    engine = engine_of(granted["submit"])
    job, other = jobs.new_job(scope="s", key="k"), jobs.new_job()
    claim = KeyClaim(scope="s", key="k", job_id=job.id, fingerprint="f", lifetime_s=60.0)
    rule = UniqueClaim(scope="s", key="u", rule=UniqueRule(replaces=True))
    more = {
        "keyed": submit_keyed([job], [claim]),
        "unique": store.submit_asked([as_unique(other, rule)]),
    }

    store.check_schema(engine)
    jobs.submit(engine)
    for kind, submit in more.items():
        if kind == besides or besides == "unique":
            assert len({engine.run(submit)[0].id for _ in range(2)}) == 1
        else:
            with pytest.raises(DatabaseError):
                engine.run(submit)
    engine.close()

    forbidden = ["DELETE FROM fencerow.finished_jobs", "CREATE TABLE fencerow.mine (x int)"]
    if besides != "unique":  # which looks at jobs, and changes them
        forbidden += [
            "SELECT args FROM fencerow.jobs",
            "SELECT result FROM fencerow.finished_jobs",
            "UPDATE fencerow.jobs SET cancel_requested_by = 'me'",
        ]
    for statement in forbidden:
        with psycopg.connect(granted["submit"]) as connection, pytest.raises(errors.InsufficientPrivilege):
            connection.execute(statement)


def test_at_a_terminal_a_bar_shows_how_far_it_is(cli: Cli, empty: str) -> None:
    known = store.known_migrations("sqlite")

    with terminal("migrate", size=(120, 24)) as shown:
        code = shown.ended()

    assert code == 0
    assert f"0/{len(known)}" in shown.shown and f"{len(known)}/{len(known)}" in shown.shown
    assert known[-1].name in shown.shown.partition(f"{len(known)}/{len(known)}")[0], "while it is under way"
    assert f"{known[-1].version:04d}  {known[-1].name}  applied" in shown.shown
