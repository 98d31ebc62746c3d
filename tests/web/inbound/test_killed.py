"""Gateways are killed while senders post to them, and send again what was not taken: each webhook is one job."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from fencerow import App
from fencerow.testing.ports import free_port
from tests.kit.command import Command
from tests.kit.pace import PATIENCE_S
from tests.web.inbound.conftest import declare
from tests.web.inbound.senders import standard

WEBHOOKS, SENDERS, KILLS = 120, 4, 6
BODY = b'{"type": "paid", "amount": 7}'
MODULE = (
    "from fencerow import App\nfrom tests.web.inbound.conftest import declare\napp = App()\ndeclare(app)\n"
)


class Gateways:
    """Two of them, each of which is started again at its place after it was killed."""

    def __init__(self, folder: Path, url: str) -> None:
        (folder / "killed_hooks.py").write_text(MODULE)
        paths = os.pathsep.join([str(folder), *sys.path])
        self._environment = {**os.environ, "FENCEROW_URL": url, "PYTHONPATH": paths}
        self._log = folder / "gateways.log"
        self.ports = [free_port(), free_port()]
        self._running = [self._started(port) for port in self.ports]

    def _started(self, port: int) -> Command:
        words = ["serve", "-A", "killed_hooks:app", "--bind", str(port)]
        return Command(words, self._environment, self._log)

    async def kill(self, which: int) -> None:
        await asyncio.to_thread(_killed, self._running[which])
        self._running[which] = self._started(self.ports[which])

    def end(self) -> None:
        for each in self._running:
            _killed(each)


def _killed(process: Command) -> None:
    with process:
        process.kill()


@pytest.mark.prove
async def test_what_was_answered_2xx_is_there_once_though_gateways_are_killed(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    taken: dict[str, set[str]] = {}
    repeated = lost = 0
    gateways = Gateways(tmp_path, url)

    async def send(http: httpx.AsyncClient, message_id: str) -> None:
        """Until it is taken, now here and now there, signed anew each time."""
        nonlocal repeated, lost
        for turn in range(10_000):
            place = f"http://127.0.0.1:{gateways.ports[turn % 2]}/v1/hooks/others"
            headers = [("content-type", "application/json"), *standard(BODY, message_id=message_id)]
            try:
                answer = await http.post(place, content=BODY, headers=headers)
            except httpx.TransportError:
                lost += 1
                await asyncio.sleep(0.05)
                continue
            if answer.status_code == 202:
                taken.setdefault(message_id, set()).add(answer.json()["job"])
                repeated += answer.json()["repeated"]
                return
            assert answer.status_code in (429, 503), answer.text
            await asyncio.sleep(0.05)

    async def sending(http: httpx.AsyncClient, first: int) -> None:
        for number in range(first, WEBHOOKS, SENDERS):
            await send(http, f"msg_{number}")

    async def killing() -> None:
        for kill in range(KILLS):
            while len(taken) < WEBHOOKS * (kill + 1) // (KILLS + 2):
                await asyncio.sleep(0.005)
            await gateways.kill(kill % 2)

    async with AsyncExitStack() as stack:
        stack.callback(gateways.end)
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=PATIENCE_S))
        await stack.enter_async_context(asyncio.timeout(2 * PATIENCE_S))
        await asyncio.gather(killing(), *(sending(http, first) for first in range(SENDERS)))
        await asyncio.gather(*(send(http, f"msg_{number}") for number in range(0, WEBHOOKS, 10)))
    async with App(url) as app:
        declare(app)
        jobs = await app.client.alist_jobs(tags=["hook:others"], limit=1000)

    assert {message_id: len(ids) for message_id, ids in taken.items()} == {
        f"msg_{number}": 1 for number in range(WEBHOOKS)
    }
    assert sorted(job.id for job in jobs) == sorted(ids.copy().pop() for ids in taken.values())
    assert lost and repeated >= WEBHOOKS // 10
    sys.stdout.write(f"{WEBHOOKS} webhooks, {KILLS} kills, {lost} answers lost, {repeated} repeats\n")
