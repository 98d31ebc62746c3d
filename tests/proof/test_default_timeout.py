"""An application that gives new sockets a default time-out: what the proofs put in between waits all the same."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencerow_proof.check.wire import Channel
from fencerow_proof.network.proxy import FaultProxy
from fencerow_proof.users.relay import PORT, Relay
from tests.kit.pace import PATIENCE_S


@pytest.fixture
def _short() -> Iterator[None]:
    socket.setdefaulttimeout(0.001)
    yield
    socket.setdefaulttimeout(None)


@pytest.mark.usefixtures("_short")
def test_what_the_proofs_put_in_between_waits(tmp_path: Path) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    server.settimeout(PATIENCE_S)
    with FaultProxy(port) as proxy:
        relay = Relay(tmp_path / "relay", lambda: socket.create_connection(("127.0.0.1", port), 10))
        for reach in (_over_tcp(proxy.port), _over_file(relay)):
            with pytest.raises(TimeoutError):
                server.settimeout(0.05)
                server.accept()  # nobody has come, for longer than the default is
            server.settimeout(PATIENCE_S)
            with next(reach):
                server.accept()[0].close()
        relay.close()
    server.close()


def _over_tcp(port: int) -> Iterator[socket.socket]:
    yield socket.create_connection(("127.0.0.1", port), PATIENCE_S)


def _over_file(relay: Relay) -> Iterator[socket.socket]:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE_S)
    client.connect(str(relay.folder / f".s.PGSQL.{PORT}"))
    yield client


@pytest.mark.usefixtures("_short")
def test_a_channel_of_a_check_waits() -> None:
    ours, theirs = socket.socketpair()

    Channel(ours)

    assert ours.gettimeout() is None
    ours.close()
    theirs.close()
