"""Gateways of a rebuilt system, each `fencerow serve` in a process of its own, and a customer who calls them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from fencerow.testing.ports import free_port
from tests.kit.pace import PATIENCE_S
from tests.web.checked import Checked
from tests.whole.systems.outside import until
from tests.whole.systems.stage import ROOT, Stage

WAIT_S = 60  # the longest that a gateway lets anybody wait
NOT_YET = (409, "FR-307")
CUSTOMER = ("submit", "read", "cancel")
DOCUMENT = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text("utf-8"))


@asynccontextmanager
async def serving(stage: Stage, folder: Path, count: int = 1) -> AsyncIterator[list[httpx.AsyncClient]]:
    """So many gateways, and a caller of each; every answer must be one that the OpenAPI document tells of."""
    made = await stage.app.client.tokens.acreate("customer", scopes=CUSTOMER)
    async with AsyncExitStack() as running:
        places = [(free_port(), folder / f"gateway {number}.log") for number in range(count)]
        for port, log in places:
            running.enter_context(stage.command(log, "serve", "--bind", str(port)))
        for port, log in places:
            await until(lambda log=log, port=port: f"127.0.0.1:{port}" in log.read_text(), "the gateway")
        yield [await running.enter_async_context(_calling(port, made.token)) for port, _ in places]


def _calling(port: int, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=Checked(httpx.AsyncHTTPTransport(), DOCUMENT),
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {token}"},
        timeout=PATIENCE_S,
    )


async def posted(http: httpx.AsyncClient, job: str, args: dict[str, Any], **options: Any) -> str:
    """Submit a job; returns its address."""
    answer = await http.post("/v1/jobs", json={"job": job, "args": args, **options})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["url"])


async def result_of(http: httpx.AsyncClient, address: str) -> httpx.Response:
    """Wait for the job's end by one long poll after the other; returns the answer with what its handler returned."""
    async with asyncio.timeout(PATIENCE_S):
        while told(answer := await http.get(f"{address}/result", params={"wait": WAIT_S})) == NOT_YET:
            pass
    assert answer.status_code == 200, answer.text
    return answer


def told(answer: httpx.Response) -> tuple[int, str | None]:
    """The status, and the code of a refusal."""
    return answer.status_code, answer.json().get("code") if answer.is_error else None
