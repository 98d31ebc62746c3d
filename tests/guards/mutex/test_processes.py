"""Mutexes between processes, also where a pooler in transaction mode stands before the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import psycopg
import pytest

from fencerow import Database
from fencerow.guards.mutex import mutexes
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.servers.pgbouncer import PgBouncer
from tests.guards.mutex.member import main
from tests.kit.forking import context
from tests.kit.pace import PATIENCE_S

PROCESSES, THREADS, ROUNDS = 4, 5, 1


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


@dataclass(frozen=True)
class Member:
    process: BaseProcess
    teller: Connection

    def said(self) -> str:
        assert self.teller.poll(PATIENCE_S)
        return str(self.teller.recv())


def started(stack: ExitStack, url: str) -> list[Member]:
    """Processes that are ready, and killed in the end whatever happens."""
    members = []
    for _ in range(PROCESSES):
        ours, theirs = context.Pipe()
        process = context.Process(target=main, args=(url, THREADS, ROUNDS, theirs), daemon=True)
        process.start()
        theirs.close()
        stack.callback(process.join)
        stack.callback(process.kill)
        members.append(Member(process, stack.enter_context(ours)))
    assert {member.said() for member in members} == {"ready"}
    return members


def tell(members: list[Member]) -> None:
    for member in members:
        member.teller.send("go on")


def test_of_twenty_at_once_one_gets_it_and_no_round_of_many_is_lost(url: str) -> None:
    with Database(url) as database, ExitStack() as stack:
        database.check_or_create()
        with database.engine.session() as session:
            session.connection.execute("CREATE TABLE counter (n integer)")
            session.connection.execute("INSERT INTO counter VALUES (0)")
        members = started(stack, url)

        tell(members)
        assert sorted(int(member.said()) for member in members) == [0] * (PROCESSES - 1) + [1]
        row = database.engine.run(mutexes.look("k"))
        assert row is not None and row.is_held and row.pid in [member.process.pid for member in members]

        tell(members)
        assert {member.said() for member in members} == {"free"}
        tell(members)
        assert {member.said() for member in members} == {"done"}
        for member in members:
            member.process.join(PATIENCE_S)
        assert [member.process.exitcode for member in members] == [0] * PROCESSES
        added = PROCESSES * THREADS * ROUNDS
        with database.engine.session() as session:
            assert session.connection.execute("SELECT n FROM counter").fetchone()[0] == added
        row = database.engine.run(mutexes.look("k"))
        assert row is not None and row.token == 1 + added
