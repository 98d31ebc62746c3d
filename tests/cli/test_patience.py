"""A worker that starts before its server does waits for it, within its patience."""

from __future__ import annotations

import os
import signal
import socketserver
import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import pq

from fencerow import Config
from fencerow.command.patience import reach_patiently
from fencerow.db import probe
from fencerow.db.probe import lets_somebody_in
from fencerow.db.url import PostgresUrl
from fencerow.errors import Unavailable
from fencerow.testing.ports import free_port
from fencerow.testing.postgres import PostgresServer
from tests.cli.conftest import Cli, command
from tests.cli.test_service import code_of
from tests.conftest import ROLE
from tests.kit.command import Command
from tests.kit.pace import PATIENCE_S

WAITS = "not started yet"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_waits_for_a_server_that_comes_later(
    cli: Cli, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    monkeypatch.setenv("FENCEROW_START_PATIENCE_S", "300")
    with PostgresServer(fast=True, tcp=True) as server:
        server.create_role_and_schema(role=ROLE, database="app")
        monkeypatch.setenv("FENCEROW_URL", server.conninfo("app", ROLE, tcp=True))
        assert cli("migrate").code == 0
        server.stop()
        ports = free_port(), free_port()
        leaves, stays = (
            command("worker", "-A", shop, "--once", "--processes", processes, "--health", str(port))
            for port in ports
        )
        for each in (leaves, stays):
            until_it_waits(each)
        assert [code_of(ports[1], path) for path in ("/livez", "/readyz")] == [200, 503]

        leaves.send_signal(signal.SIGTERM)
        left = leaves.communicate(timeout=PATIENCE_S)[1]
        server.start()
        log = stays.communicate(timeout=PATIENCE_S)[1]

    assert leaves.returncode in (0, -signal.SIGTERM) and "answers after" not in left, left
    assert stays.returncode == 0 and "the server answers after" in log, log


def until_it_waits(process: Command) -> None:
    until_said(process, WAITS)


def until_said(process: Command, what: str) -> str:
    """The first line with it."""
    assert process.stderr is not None
    while what not in (line := process.stderr.readline()):
        assert line
    return line


def test_so_does_what_serves_others(cli: Cli, shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEROW_START_PATIENCE_S", "300")
    with PostgresServer(fast=True, tcp=True) as server:
        server.create_role_and_schema(role=ROLE, database="app")
        monkeypatch.setenv("FENCEROW_URL", server.conninfo("app", ROLE, tcp=True))
        assert cli("migrate").code == 0
        server.stop()
        ports = {name: free_port() for name in ("serve", "dashboard", "metrics")}
        serving = [command(name, "-A", shop, "--bind", str(port)) for name, port in ports.items()]
        for each in serving:
            until_it_waits(each)
        for port in ports.values():
            assert [code_of(port, path) for path in ("/livez", "/readyz")] == [200, 503]

        server.start()
        for each in serving[:2]:
            assert each.stderr is not None
            while " http://127.0.0.1" not in (line := each.stderr.readline()):
                assert line, "it serves now"
        until = time.monotonic() + PATIENCE_S
        while not is_ready(ports["metrics"]):
            assert time.monotonic() < until
            time.sleep(0.05)
        for port in ports.values():
            assert [code_of(port, path) for path in ("/livez", "/readyz")] == [200, 200]
        for each in serving:
            each.send_signal(signal.SIGTERM)
            said = each.communicate(timeout=PATIENCE_S)[1]
            assert each.returncode == 0, said


def test_a_server_that_has_no_connection_left_is_waited_for_until_one_is_free(
    cli: Cli, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have all of them: first those of ordinary roles, then those that are reserved, too."""
    monkeypatch.setenv("FENCEROW_START_PATIENCE_S", "300")
    with PostgresServer(fast=True, settings={"max_connections": "40"}) as server, ExitStack() as held:
        ours = server.create_role_and_schema(role=ROLE, database="app")
        monkeypatch.setenv("FENCEROW_URL", ours)
        assert cli("migrate").code == 0
        fill(held, ours)
        ports = {name: free_port() for name in ("worker", "serve", "metrics")}
        starting = [
            command(name, "-A", shop, "--health" if name == "worker" else "--bind", str(port))
            for name, port in ports.items()
        ]
        for each in starting:
            assert "remaining connection slots are reserved" in until_said(each, WAITS)
        for port in ports.values():
            assert [code_of(port, path) for path in ("/livez", "/readyz")] == [200, 503]
        fill(held, server.conninfo("app"))
        for each in starting:
            until_said(each, "too many clients already")

        held.close()
        until = time.monotonic() + PATIENCE_S
        while not all(is_ready(port) for port in ports.values()):
            assert time.monotonic() < until
            time.sleep(0.05)
        for each in starting:
            each.send_signal(signal.SIGTERM)
            said = each.communicate(timeout=PATIENCE_S)[1]
            assert each.returncode == 0, said


def fill(held: ExitStack, url: str) -> None:
    """Take all that this role may have."""
    with suppress(psycopg.OperationalError):
        while True:
            held.enter_context(closing(psycopg.connect(url)))


def is_ready(port: int) -> bool:
    return code_of(port, "/readyz") == 200


def test_a_server_that_stays_away_ends_it_when_its_patience_is_over(
    cli: Cli, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_START_PATIENCE_S", "0.3")

    result = cli("worker", "-A", shop, "--url", "postgresql://app@127.0.0.1:1/app")

    assert result.code == 3
    assert "\nFR-502: no connection" in f"\n{result.err}"


class Refusing(socketserver.BaseRequestHandler):
    said = b""

    def handle(self) -> None:
        self.request.recv(4096)
        said = b"SFATAL\0" + self.said + b"\0\0"
        self.request.sendall(b"E" + (len(said) + 4).to_bytes(4, "big") + said)


@pytest.mark.parametrize(
    ("said", "lets_in"),
    [
        (b"C57P03\0Mdas Datenbanksystem startet", False),
        pytest.param(
            b"C53300\0Mtut mir leid, schon zu viele Verbindungen",
            False,
            marks=pytest.mark.skipif(pq.version() < 180000 or sys.platform != "linux", reason="no trace"),
        ),
        (b"C28P01\0MPasswort-Authentifizierung", True),
    ],
)
def test_a_server_that_starts_or_is_full_is_known_by_its_code_in_any_language(
    said: bytes, lets_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refusing, "said", said)
    with socketserver.TCPServer(("127.0.0.1", 0), Refusing) as server:
        if (pid := os.fork()) == 0:  # no thread of ours would run while libpq asks
            while True:
                server.handle_request()
        port = server.server_address[1]

        found = lets_somebody_in(f"postgresql://app@127.0.0.1:{port}/app?sslmode=disable")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert found is lets_in


@pytest.mark.parametrize(
    "why",
    [
        "FATAL: server login has been failing, try again later (server_login_retry)",
        "FATAL: sorry, too many clients already",
        'FATAL: too many connections for role "app"',
    ],
)
def test_what_passes_by_itself_is_no_server_that_refuses(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    said = [why] * 3

    def reach(_url: str, _timeout_s: float) -> None:
        if said:
            raise Unavailable("no connection", said.pop())

    monkeypatch.setattr(probe, "reach_postgres", reach)
    monkeypatch.setattr(probe, "lets_somebody_in", lambda _url: True)

    reach_patiently(PostgresUrl("postgresql://app@pooler/app"), Config())

    assert said == []


def test_a_refused_role_ends_several_processes_as_it_ends_one(
    shop: str, tcp_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_START_PATIENCE_S", "300")
    url = tcp_server.conninfo("app", ROLE, tcp=True).replace(tcp_server.password, "hidden")
    monkeypatch.setenv("FENCEROW_URL", url)

    process = command("worker", "-A", shop, "--processes", "2")
    log = process.communicate(timeout=PATIENCE_S)[1]

    assert process.returncode == 3
    assert log.count("FR-502: no connection") == 1 and WAITS not in log, log
