"""A client of a gateway on a real socket; the gateway's own fixtures are found here too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from fencerow import App
from fencerow.supervisor.probes import ProbeAddress, listening
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.server import Server
from fencerow.web.remote import RemoteClient
from fencerow.web.settings import WebSettings
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import Door
from tests.web.gateway.conftest import door as door
from tests.web.gateway.conftest import lite_app as lite_app


@pytest.fixture
async def client(lite_app: App, door: Door) -> AsyncIterator[RemoteClient]:
    """A client of a gateway on a real socket."""
    found = listening(ProbeAddress("127.0.0.1", 0))
    async with lite_app:
        server = Server(Gateway(lite_app, authorize=door), WebSettings())
        running = asyncio.create_task(server.run([found]))
        async with RemoteClient(f"http://127.0.0.1:{found.getsockname()[1]}", token="t") as made:
            yield made
        server.leave()
        server.leave()
        async with asyncio.timeout(PATIENCE_S):
            await running
