"""The pooler of the tests is one in earnest: what leaves something in a session breaks, and we do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fencerow import Config
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.doctor import on_postgres
from fencerow.doctor.examine import examine
from fencerow.operators import looking
from fencerow.testing.pg_binaries import BinariesMissing
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer, find_pgbouncer
from tests.kit.jobs import claim, new_job, register
from tests.kit.servers import CopiedServer

ROLE = "app"


@pytest.fixture
def url(server: PostgresServer, postgres_url: str) -> Iterator[str]:
    """A fresh migrated database, through a pooler whatever the other tests are run through."""
    with PgBouncer(server) as own:
        yield own.conninfo(database(postgres_url), ROLE)


def database(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def pid(connection: psycopg.Connection[Any]) -> int:
    return int(str(connection.execute("SELECT pg_backend_pid()").fetchall()[0][0]))


@pytest.mark.outside("PgBouncer")
def test_between_two_transactions_the_session_is_anybodys(url: str) -> None:
    one = psycopg.connect(url, autocommit=True, prepare_threshold=0)
    other = psycopg.connect(url, prepare_threshold=None)
    first = pid(one)
    assert pid(other) == first, "the only session, which nobody held, went to the other"
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        pid(one)  # a second session, where nothing was prepared

    one.close()
    other.close()


@pytest.mark.outside("PgBouncer")
def test_our_own_statements_do_not_mind(url: str) -> None:
    engine = PostgresEngine(url, store.postgres_queries(), pool_max=2)
    sessions = set()
    for number in range(12):
        with psycopg.connect(url, prepare_threshold=None) as other:
            if number % 2:
                other.execute("SELECT 1")  # holds the session that we had
            engine.run(store.submit([new_job()]))
            claim(engine, register(engine), limit=1)
            with engine.session() as session:
                sessions.add(pid(session.connection))
    assert len(engine.run(looking.list_jobs(limit=100))) == 12
    assert len(sessions) > 1, "it was the same session each time: nothing was shown"
    engine.close()


@pytest.mark.outside("PgBouncer")
def test_doctor_says_that_listen_hears_nothing_and_finds_nothing_else(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_postgres, "HEARD_S", 0.3)
    found = {each.name: each for each in examine(Config(url=url))}
    heard = found.pop("listen")
    assert heard.level == "warn"
    assert "FENCEROW_LISTEN_URL" in str(heard.fix)
    assert "fail" not in {each.level for each in found.values()}


@pytest.mark.outside("PgBouncer")
def test_a_pooler_that_lost_its_server_is_trouble_and_over_when_the_server_is_back() -> None:
    with CopiedServer(fast=True) as server, PgBouncer(server) as pooler:
        engine = PostgresEngine(
            pooler.pooled(server.create_role_and_schema()), store.postgres_queries(), connect_timeout_s=10
        )
        store.migrate(engine)
        server.restart("immediate")
        engine.run(store.submit([new_job()]))
        assert len(engine.run(looking.list_jobs())) == 1
        engine.close()


def test_what_is_missing_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BinariesMissing, match="apt-get install pgbouncer"):
        find_pgbouncer({"PATH": str(tmp_path)}, folders=str(tmp_path))
