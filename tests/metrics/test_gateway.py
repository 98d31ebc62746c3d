"""`/metrics` of the gateway: for tokens that may read all queues."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from fencerow import App
from fencerow.metrics import Metrics
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.metrics import metrics_route
from fencerow.web.tokens.scope import Scope
from tests.metrics.test_page import app_on, samples
from tests.web.gateway.conftest import Door


async def asked(app: App, door: Door, submits: int = 0) -> httpx.Response:
    with Metrics(app) as metrics:
        gateway = Gateway(app, authorize=door, also=[metrics_route(metrics)])
        transport = httpx.ASGITransport(gateway)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            for _ in range(submits):
                await http.post("/v1/jobs", json={"job": "send", "args": {"to": "ada"}})
            answer = await http.get("/metrics")
        await gateway.aclose()
    await app.aclose()
    return answer


async def test_it_tells_of_the_submits_of_this_process_and_of_the_database(migrated_path: Path) -> None:
    answer = await asked(app_on(migrated_path), Door(), submits=2)

    found = samples(answer.content)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert found["fencerow_submits_total", "send", "inserted", "mail"] == 2
    assert found["fencerow_jobs", "mail", "due"] == 2


@pytest.mark.parametrize(("scopes", "queues"), [((Scope.SUBMIT,), None), ((Scope.READ,), {"mail"})])
async def test_who_may_not_read_all_queues_is_refused(
    migrated_path: Path, scopes: tuple[Scope, ...], queues: set[str] | None
) -> None:
    door = Door()
    door.only(*scopes, queues=queues)

    assert (await asked(app_on(migrated_path), door)).status_code == 403
