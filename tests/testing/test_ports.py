"""A port for a server of our own."""

from __future__ import annotations

import socket

import pytest

from fencerow.testing import ports


def test_it_is_none_that_an_outgoing_connection_may_take() -> None:
    assert 1024 <= ports.free_port() < 32_768


def test_one_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", ports.free_port())) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "PORTS", range(port, port + 1))

        with pytest.raises(RuntimeError, match=f"no port from {port} to {port}"):
            ports.free_port()
