"""A dashboard in a thread of a program that does something else."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from fencerow.app import App
from fencerow.core.errors import ConfigError
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.local import LocalDashboard


def refused() -> tuple[App, Dashboard]:
    raise ConfigError("the database cannot be used", "it is of another release", "migrate it")


def test_who_cannot_serve_is_told_at_once_and_keeps_no_port() -> None:
    local = LocalDashboard(refused)

    with pytest.raises(ConfigError, match="of another release"), local:
        pytest.fail("nobody serves here")

    address = urlsplit(local.url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((str(address.hostname), address.port or 0)).close()
