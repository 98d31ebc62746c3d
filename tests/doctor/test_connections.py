"""doctor: the sum over all worker processes, against what limits the server, and behind a pooler."""

from __future__ import annotations

from typing import Any

import msgspec
import psycopg
import pytest

from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli

_clean, cli = command_line._clean, command_line.cli  # fixtures


def worker(engine: PostgresEngine, connections: int | None) -> None:
    info = {"queues": ["mail"], "slots": 10} | ({} if connections is None else {"connections": connections})
    text = msgspec.json.encode(info).decode()
    assert engine.run(store.register(holder=new_id(), name="w", host="h", pid=1, info=text, lease_s=60.0))


def found(cli: Cli, name: str = "connections") -> dict[str, Any]:
    (one,) = [each for each in cli("doctor", "--json").json["findings"] if each["name"] == name]
    return dict(one)


ROLE = "app"


@pytest.fixture
def database(pg: PostgresEngine, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the database that the command works on, directly, whatever the tests are run through."""
    name = str(psycopg.conninfo.conninfo_to_dict(pg.conninfo)["dbname"])
    monkeypatch.setenv("FENCEROW_URL", server.conninfo(name, ROLE))
    return name


def test_what_all_workers_may_open_is_summed(cli: Cli, database: str, pg: PostgresEngine) -> None:
    worker(pg, 13)
    worker(pg, 15)

    one = found(cli)

    assert one["level"] == "ok", one
    assert "2 living worker processes may open up to 28" in one["found"]


def test_more_than_the_server_can_hold_is_a_warning(
    cli: Cli, database: str, pg: PostgresEngine, server: PostgresServer
) -> None:
    for connections in (30, 30, None):  # the last one is of a release that does not say
        worker(pg, connections)
    with server.connect() as connection:
        connection.execute(f"ALTER DATABASE {database} CONNECTION LIMIT 70".encode())

    one = found(cli)

    assert one["level"] == "warn"
    assert "of 70 connections" in one["found"] and "CONNECTION LIMIT of the database" in one["found"]
    assert "3 living worker processes may open up to 82" in one["found"]
    assert "FENCEROW_POOL_MAX" in one["fix"] and "a pooler" in one["fix"]


def test_no_room_for_one_more_is_a_warning(
    cli: Cli, database: str, pg: PostgresEngine, server: PostgresServer
) -> None:
    with server.connect() as connection:
        connection.execute(f"ALTER DATABASE {database} CONNECTION LIMIT 10".encode())

    assert "no room for one more worker" in found(cli)["found"]


@pytest.mark.outside("PgBouncer")
def test_behind_a_pooler_it_is_the_poolers_limit_that_counts(
    cli: Cli, database: str, pg: PostgresEngine, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker(pg, 500)
    with PgBouncer(server) as pooler:
        monkeypatch.setenv("FENCEROW_URL", pooler.conninfo(database, ROLE))
        one = found(cli)

    assert one["level"] == "ok", "the server sees the pooler's connections, not the workers'"
    assert one["found"].startswith("through a pooler: 1 living worker process may open up to 500")
    assert "max_client_conn" in one["found"]


@pytest.mark.outside("PgBouncer")
def test_a_pooler_is_told_of_plans_where_the_driver_cannot_tell_the_server_and_the_role_does_not(
    cli: Cli, database: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = [_level_of_plans(cli, database, server, monkeypatch)]
    monkeypatch.setattr("fencerow.doctor.connections.TAKES_TWO", False)
    for settings in ((), ("enable_seqscan = off", "seq_page_cost = 0")):
        with server.connect() as connection:
            for each in settings:
                connection.execute(f"ALTER ROLE {ROLE} IN DATABASE {database} SET {each}".encode())
        levels.append(_level_of_plans(cli, database, server, monkeypatch))

    assert levels == ["ok", "info", "ok"]


def _level_of_plans(
    cli: Cli, database: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> object:
    with PgBouncer(server) as pooler:
        monkeypatch.setenv("FENCEROW_URL", pooler.conninfo(database, ROLE))
        return found(cli, "plans")["level"]
