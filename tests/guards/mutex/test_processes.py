"""Mutexes between processes, also where a pooler in transaction mode stands before the server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from fencerow import Database
from fencerow.guards.mutex import mutexes
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.kit.pace import PATIENCE_S

ROOT = Path(__file__).parents[3]
PROCESSES, THREADS, ROUNDS = 4, 5, 1
OURS = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


@pytest.fixture(
    params=["sqlite", "postgres", pytest.param("pgbouncer", marks=pytest.mark.outside("PgBouncer"))]
)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{request.getfixturevalue('sqlite_path')}"
        return
    found = str(request.getfixturevalue("postgres_url"))
    server: PostgresServer = request.getfixturevalue("server")
    name = str(psycopg.conninfo.conninfo_to_dict(found)["dbname"])
    with server.connect(name) as connection:
        connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    if request.param == "postgres":
        yield found
        return
    with PgBouncer(server) as pooler:
        yield pooler.conninfo(name, "app")


def started(stack: ExitStack, url: str) -> list[subprocess.Popen[str]]:
    """Processes that are ready, and killed in the end whatever happens."""
    members = []
    for _ in range(PROCESSES):
        member = subprocess.Popen(
            [sys.executable, "-m", "tests.guards.mutex.member", url, str(THREADS), str(ROUNDS)],
            cwd=ROOT,
            env={**os.environ, **OURS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(member.wait)
        stack.callback(member.kill)
        stack.enter_context(member)
        members.append(member)
    for member in members:
        assert said(member) == "ready"
    return members


def said(member: subprocess.Popen[str]) -> str:
    assert member.stdout is not None
    return member.stdout.readline().strip()


def tell(members: list[subprocess.Popen[str]]) -> None:
    for member in members:
        assert member.stdin is not None
        member.stdin.write("\n")
        member.stdin.flush()


def test_of_twenty_at_once_one_gets_it_and_no_round_of_many_is_lost(url: str) -> None:
    with Database(url) as database, ExitStack() as stack:
        database.check_or_create()
        with database.engine.session() as session:
            session.connection.execute("CREATE TABLE counter (n integer)")
            session.connection.execute("INSERT INTO counter VALUES (0)")
        members = started(stack, url)

        tell(members)
        assert sorted(int(said(member)) for member in members) == [0] * (PROCESSES - 1) + [1]
        row = database.engine.run(mutexes.look("k"))
        assert row is not None and row.is_held and row.pid in [member.pid for member in members]

        tell(members)
        assert {said(member) for member in members} == {"free"}
        tell(members)
        assert {said(member) for member in members} == {"done"}
        assert [member.wait(PATIENCE_S) for member in members] == [0] * PROCESSES
        added = PROCESSES * THREADS * ROUNDS
        with database.engine.session() as session:
            assert session.connection.execute("SELECT n FROM counter").fetchone()[0] == added
        row = database.engine.run(mutexes.look("k"))
        assert row is not None and row.token == 1 + added
