"""Connections that say a byte now and then keep no probe away."""

from __future__ import annotations

import socket

import pytest

from fencerow.supervisor import probes as module
from fencerow.supervisor.probes import AT_ONCE_MAX
from tests.kit.pace import PATIENCE_S
from tests.supervisor.test_probes import WELL, asked, served


def test_the_oldest_of_too_many_gives_way() -> None:
    probes, port = served(lambda: WELL)

    with probes:
        slow = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) for _ in range(AT_ONCE_MAX)]
        for each in slow:
            each.send(b"G")
        code, _ = asked(port, "/livez")
        assert slow[0].recv(1) == b""
        for each in slow:
            each.close()

    assert code == 200


def test_a_request_that_takes_too_long_is_ended_though_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_S", 0.0)
    monkeypatch.setattr(module, "READ_S", 10 * PATIENCE_S)
    probes, port = served(lambda: WELL)

    with probes, socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as slow:
        slow.send(b"G")
        assert slow.recv(1) == b""
