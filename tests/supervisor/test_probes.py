"""The port for probes: 200 or 503 with the reason, and nobody can make it hang."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest

from fencerow.core.errors import ConfigError
from fencerow.supervisor.probes import (
    AT_ONCE_MAX,
    ProbeAddress,
    Probes,
    listening,
    parsed_address,
    waiting_at,
)
from fencerow.supervisor.standing import Standing
from fencerow.testing.ports import free_port
from tests.kit.pace import PATIENCE_S

WELL = Standing(True, False, "running, 0 jobs held")
AWAY = Standing(False, False, "waits for the database, 0 jobs held")
ILL = Standing(False, False, "running", ("the keeper has\nmade no turn",))


def asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def served(look: Callable[[], Standing]) -> tuple[Probes, int]:
    port = free_port()
    return Probes(ProbeAddress("127.0.0.1", port), look), port


@pytest.mark.parametrize(
    ("standing", "live", "ready"),
    [(WELL, 200, 200), (AWAY, 200, 503), (ILL, 503, 503)],
    ids=["well", "away", "ill"],
)
def test_the_answer_is_how_it_stands(standing: Standing, live: int, ready: int) -> None:
    probes, port = served(lambda: standing)

    with probes:
        answers = asked(port, "/livez"), asked(port, "/readyz?verbose"), asked(port, "/other")

    assert [code for code, _ in answers] == [live, ready, 404]
    assert answers[0][1].count("\n") == 1, "what a fault says stays on one line"


def test_those_who_connect_and_say_nothing_keep_nobody_waiting() -> None:
    probes, port = served(lambda: WELL)

    with probes:
        silent = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(AT_ONCE_MAX - 1)]
        code, _ = asked(port, "/livez")
        for each in silent:
            each.close()

    assert code == 200


def test_whoever_comes_while_a_door_is_handed_over_is_answered_by_the_next() -> None:
    with listening(ProbeAddress("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        with waiting_at(bound):
            waited = asked(port, "/readyz")
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as between:
            between.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            with Probes(bound, lambda: WELL):
                said = between.recv(4096)

    assert (waited[0], said.split()[1]) == (503, b"200")


def test_a_port_that_is_taken_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(ConfigError, match=f"--health cannot listen on 127.0.0.1 port {port}"):
            Probes(ProbeAddress("127.0.0.1", port), lambda: WELL).__enter__()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", ("127.0.0.1", 8080)),
        ("10.0.0.1:8080", ("10.0.0.1", 8080)),
        ("[::]:8080", ("::", 8080)),
    ],
)
def test_where_it_listens(text: str, address: tuple[str, int]) -> None:
    assert parsed_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "0", "65536", "tcp://10.0.0.1:80", "300.0.0.1:80", "host:80", ":80", "[::]"]
)
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--health"):
        parsed_address(text)
