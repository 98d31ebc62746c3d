"""Part C of the four systems, what its operators watch: `/metrics` of the gateway, and the log of a request."""

from __future__ import annotations

import logging

import httpx
import pytest

from fencerow.logs import LogFields
from fencerow.metrics import Metrics
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.metrics import metrics_route
from tests.kit.pace import PATIENCE_S
from tests.metrics.test_page import samples
from tests.web.gateway.conftest import Door
from tests.whole.systems import tzurot
from tests.whole.systems.outside import until
from tests.whole.systems.stage import Stage
from tests.whole.systems.watching import Page, Watch

SYSTEM = tzurot  # which `stage` opens


class Lines(logging.Handler):
    """The stages of jobs that were logged under each correlation id."""

    def __init__(self) -> None:
        super().__init__()
        self.addFilter(LogFields())
        self.found: dict[str, list[str]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        known = vars(record)
        if known["correlation_id"] is not None:
            self.found.setdefault(known["correlation_id"], []).append(
                f"{known['job']}: {record.getMessage()}"
            )


@pytest.mark.scenario("C.18")
async def test_the_gateway_tells_what_waits_and_ended_and_one_id_finds_the_lines_of_a_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tzurot.llm.script("hang", "value error")
    watch, lines = Watch(monkeypatch), Lines()
    caplog.set_level(logging.INFO, "fencerow")
    logging.getLogger().addHandler(lines)
    try:
        with Metrics(stage.app) as metrics:
            gateway = Gateway(stage.app, authorize=Door(), also=[metrics_route(metrics)])
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(gateway), base_url="http://localhost"
            ) as http:
                asked = [await _asked(http, text) for text in ("hello", "good bye")]
                waits = await _page(http, watch)
                async with stage.app.worker(slots=1):
                    await until(tzurot.llm.calls, "the run")
                    runs = await _page(http, watch)
                    tzurot.llm.release()
                    for job_id, _ in asked:
                        await stage.app.client.await_ended(job_id, PATIENCE_S)
                over = await _page(http, watch)
            await gateway.aclose()
    finally:
        logging.getLogger().removeHandler(lines)

    assert waits["fencerow_jobs", "ai-requests", "due"] == 2
    assert runs["fencerow_jobs", "ai-requests", "running"] == 1
    for outcome in ("succeeded", "failed"):
        assert over["fencerow_jobs_finished_total", "converse", outcome, "ai-requests"] == 1
    assert {over["fencerow_jobs", "ai-requests", each] for each in ("due", "running")} == {0}
    for (job_id, request_id), end in zip(asked, ("succeeded", "failed"), strict=True):
        told = lines.found[request_id]
        assert all(job_id in each for each in told)
        assert any("started" in each for each in told) and any(end in each for each in told), told


async def _asked(http: httpx.AsyncClient, message: str) -> tuple[str, str]:
    """Post a message; the id of its job, and that of the request."""
    args = {"channel": "room", "message": message}
    answer = await http.post("/v1/jobs", json={"job": "converse", "args": args})
    return str(answer.json()["id"]), answer.headers["x-request-id"]


async def _page(http: httpx.AsyncClient, watch: Watch) -> Page:
    watch.pass_by()
    return samples((await http.get("/metrics")).content)
