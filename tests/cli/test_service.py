"""`worker` as a service: what systemd and probes are told from its start to its end, as one process and as several."""

from __future__ import annotations

import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencerow.cli.serving import command_of
from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.ports import free_port
from tests.cli.conftest import Cli, command
from tests.kit.pace import PATIENCE_S


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket on which a service manager listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "60000000")
        yield heard


def until(heard: socket.socket, line: str) -> list[str]:
    """All that it was told up to this line."""
    lines: list[str] = []
    while line not in lines:
        lines += heard.recv(4096).decode().split("\n")
    return lines


def code_of(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("processes", ["1", "2"])
def test_it_says_when_it_is_ready_alive_and_leaving(
    lite: SqliteEngine, shop: str, manager: socket.socket, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")
    port = free_port()

    process = command("worker", "-A", shop, "--processes", processes, "--health", str(port))
    try:
        told = until(manager, "READY=1")
        codes = [code_of(port, path) for path in ("/livez", "/readyz")]
        process.send_signal(signal.SIGTERM)
        end = until(manager, "STOPPING=1")
    except BaseException:
        process.kill()
        raise
    finally:
        _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, err
    assert codes == [200, 200]
    assert "WATCHDOG=1" in told and "READY=1" not in end


def test_a_port_that_is_taken_ends_it_before_it_starts(
    lite: SqliteEngine, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = command("worker", "-A", shop, "--health", port)
        _, err = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, err.count("FR-101")) == (2, 1), err


def test_each_process_runs_the_same_command_line_and_is_told_what_it_is() -> None:
    words = command_of(("-A", "shop:app", "worker", "--processes", "4", "--"), 2, 7)

    assert words[-7:] == ["-A", "shop:app", "worker", "--processes", "4", "--member", "2:7"]


@pytest.mark.parametrize("text", ["2", "a:b", "2:", "1:9999"])
def test_what_is_for_a_supervisor_alone_is_refused_from_people(cli: Cli, shop: str, text: str) -> None:
    assert cli("worker", "-A", shop, "--member", text).error == "FR-201"
