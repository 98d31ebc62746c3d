"""The private server: what it promises about its life, its data and what a role may do."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest
from psycopg import errors

from fencerow.testing.postgres import BinariesMissing, PostgresServer, ServerFailed, find_binaries


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(fast=True, tcp=True) as running:
        yield running


@pytest.fixture
def closed_umask() -> Iterator[None]:
    """What root makes is closed to all others."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_it_is_a_server_of_its_own_process_and_runs_without_root(server: PostgresServer) -> None:
    assert server.pid is not None
    status = Path(f"/proc/{server.pid}/status").read_text()

    assert f"\nPPid:\t{os.getpid()}\n" in status
    assert "\nUid:\t0\t" not in status


def test_it_commits_for_real(server: PostgresServer) -> None:
    with server.connect() as connection:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"SHOW {name}").fetchone() == ("on",)


def test_only_its_owner_reaches_the_socket(server: PostgresServer) -> None:
    assert server.directory.stat().st_mode & 0o777 == 0o700


async def test_the_tcp_port_asks_for_the_password(server: PostgresServer) -> None:
    url = server.conninfo(tcp=True)
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()

    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url.replace(server.password, "wrong"))


def test_a_server_without_tcp_says_so() -> None:
    server = PostgresServer()

    with pytest.raises(ValueError, match="tcp=True"):
        server.conninfo(tcp=True)
    with pytest.raises(ServerFailed, match="never started"):
        _ = server.directory


def test_a_role_owns_its_schema_and_nothing_else(server: PostgresServer) -> None:
    url = server.create_role_and_schema(role="clerk", database="office", schema="desk")

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE desk.paper (id int)")
        for beyond in ("CREATE SCHEMA other", "CREATE TABLE public.paper (id int)", "CREATE DATABASE other"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(beyond)
        assert connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        ).fetchone() == (False, False, False)


def test_one_role_can_have_several_databases(server: PostgresServer) -> None:
    first = server.create_role_and_schema(role="mover", database="here", schema="s")
    second = server.create_role_and_schema(role="mover", database="there", schema="s")

    assert first != second
    for url in (first, second):
        psycopg.connect(url).close()


def test_a_database_is_copied_from_a_template(server: PostgresServer) -> None:
    url = server.create_role_and_schema(role="author", database="draft", schema="s")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE s.page AS SELECT 7 AS number")

    server.create_database("copy", template="draft")

    with psycopg.connect(server.conninfo("copy", "author")) as connection:
        assert connection.execute("SELECT number FROM s.page").fetchone() == (7,)
    server.drop_database("copy")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(server.conninfo("copy"))


def test_killed_backends_are_gone_when_it_returns(server: PostgresServer) -> None:
    server.create_database("crowd")
    guest = psycopg.connect(server.conninfo("crowd"))

    assert server.kill_backends("crowd") == 1
    with pytest.raises(psycopg.OperationalError):
        guest.execute("SELECT 1")
    guest.close()
    assert server.kill_backends("crowd") == 0


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_what_was_committed_survives_a_stop(mode: str) -> None:
    with PostgresServer(fast=True, tcp=True) as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        url = server.conninfo(tcp=True)

        server.stop("immediate" if mode == "immediate" else "fast")
        assert server.pid is None
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        server.stop()
        server.start()

        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
        recovered = "automatic recovery in progress" in server.log_tail()
        assert recovered == (mode == "immediate")


def test_it_outlives_the_thread_that_started_it() -> None:
    with PostgresServer(fast=True) as server:
        server.stop()
        starter = threading.Thread(target=server.start)
        starter.start()
        starter.join()

        # Long enough for a signal that is sent when the thread ends; its absence is the assertion.
        with server.connect() as connection:
            connection.execute("SELECT pg_sleep(0.3)")
        assert server.pid is not None


FORKER = """
import os, sys
from fencerow.testing.postgres import PostgresServer
server = PostgresServer(fast=True).start()
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
with server.connect() as connection:
    print(connection.execute("SELECT 'alive'").fetchone()[0])
server.close()
"""


def test_a_forked_child_does_not_take_it_along() -> None:
    forked = subprocess.run([sys.executable, "-c", FORKER], capture_output=True, text=True)

    assert forked.stdout == "alive\n", forked.stderr


def test_it_removes_its_directory() -> None:
    with PostgresServer(fast=True) as server:
        directory = server.directory
        assert directory.exists()

    assert not directory.exists()


def test_it_lies_where_it_is_told_to(tmp_path: Path) -> None:
    with PostgresServer(fast=True) as neighbour:
        folder = neighbour.directory.parent / f"{tmp_path.name}-{os.getpid()}"
        folder.mkdir()
        folder.chmod(0o755)
        try:
            with PostgresServer(parent=folder) as server:
                assert server.directory.parent == folder
                with server.connect() as connection:
                    assert connection.execute("SHOW data_directory").fetchone() == (
                        str(server.directory / "data"),
                    )
            assert list(folder.iterdir()) == []
        finally:
            folder.rmdir()


def test_a_folder_that_cannot_hold_its_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too long"):
        PostgresServer(parent=tmp_path / ("x" * 120))


STARTER = """
import sys
from fencerow.testing.postgres import PostgresServer
server = PostgresServer(fast=True).start()
print(server.pid, server.directory, flush=True)
sys.stdin.read()
"""


def test_it_dies_with_a_starter_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        pid, directory = starter.stdout.readline().split()
        os.kill(int(pid), 0)

        starter.kill()
        starter.wait()

    until(
        lambda: not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    )
    # The next server of anyone sweeps what a killed one left, once it is a minute old.
    os.utime(directory, (time.time() - 120,) * 2)
    PostgresServer(fast=True).start().close()
    assert not Path(directory).exists()


def test_a_living_owner_is_never_swept(server: PostgresServer) -> None:
    os.utime(server.directory, (time.time() - 120,) * 2)

    PostgresServer(fast=True).start().close()

    with server.connect() as connection:
        connection.execute("SELECT 1")


def test_a_failed_start_shows_the_log_and_leaves_nothing() -> None:
    server = PostgresServer(fast=True, settings={"shared_buffers": "many"})

    with pytest.raises(ServerFailed, match='invalid value for parameter "shared_buffers"'):
        server.start()
    assert server.pid is None


def test_missing_binaries_are_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BinariesMissing, match="FENCEROW_PG_BIN") as caught:
        find_binaries({"FENCEROW_PG_BIN": str(tmp_path)})

    assert str(tmp_path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 3


def test_a_client_only_pg_config_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pg_config"
    program.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    program.chmod(0o755)
    monkeypatch.setattr("fencerow.testing.pg_binaries.DEBIAN_FOLDERS", tmp_path)
    monkeypatch.setattr("fencerow.testing.pg_binaries.WHEEL", "no_such_wheel")

    with pytest.raises(BinariesMissing, match=str(tmp_path)):
        find_binaries({"PATH": str(tmp_path)})


def test_debian_folders_are_tried_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for major in ("9", "15", "18"):
        folder = tmp_path / major / "bin"
        folder.mkdir(parents=True)
        for program in ("postgres", "initdb"):
            (folder / program).touch(0o755)
    monkeypatch.setattr("fencerow.testing.pg_binaries.DEBIAN_FOLDERS", tmp_path)

    assert find_binaries({"PATH": ""}) == tmp_path / "18" / "bin"


def test_the_wheel_serves_as_well() -> None:
    binaries = find_binaries({"FENCEROW_PG_FROM": "wheel"})

    with PostgresServer(binaries=binaries, fast=True) as server, server.connect() as connection:
        assert connection.info.server_version >= 180000


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as someone else")
def test_programs_that_nobody_cannot_reach_are_copied(tmp_path: Path, closed_umask: None) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    wheel = find_binaries({"FENCEROW_PG_FROM": "wheel"})
    (closed / "site").symlink_to(wheel.parents[2])
    binaries = closed / "site" / wheel.relative_to(wheel.parents[2])

    with PostgresServer(binaries=binaries, fast=True) as server:
        assert server.binaries.is_relative_to(server.directory)


def test_a_server_that_crashed_by_itself_starts_again() -> None:
    with PostgresServer(fast=True) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGQUIT)
        until(lambda: server.pid is None)

        server.start()

        with server.connect() as connection:
            connection.execute("SELECT 1")


def until(condition: Callable[[], bool], deadline_s: float = 60) -> None:
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.02)


def is_alive(pid: str) -> bool:
    # An orphan that nobody has waited for yet is a zombie: dead, but still listed.
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()
