"""`fencerow workers --json` has how many connections a worker's process opens at most."""

from __future__ import annotations

import asyncio

from fencerow import App
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures


async def test_a_program_is_told_how_many_connections_a_worker_opens(cli: Cli, url: str) -> None:
    async with App(url) as app:
        app.job(name="work")(lambda: None)
        async with app.worker() as worker:
            (found,) = (await asyncio.to_thread(cli, "workers", "--json")).json

            assert found["info"]["connections"] == worker.vitals().connections
            assert (found["info"]["connections"] > 0) is url.startswith("postgresql")
