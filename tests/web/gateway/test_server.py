"""The gateway on a real socket: who hangs up, and how it stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
import pytest

from fencerow import App
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings
from tests.web.checked import Checked, document_of
from tests.web.gateway.conftest import Door, calling
from tests.web.gateway.serving import PATIENCE_S, Served, serving_on, until, waited_for


@pytest.fixture
async def http(open_app: App, served: Served) -> AsyncIterator[httpx.AsyncClient]:
    transport = Checked(httpx.AsyncHTTPTransport(), document_of(Gateway(open_app)))
    address = f"http://127.0.0.1:{served.port}"
    async with httpx.AsyncClient(transport=transport, base_url=address, timeout=PATIENCE_S) as made:
        yield made


async def submitted(http: httpx.AsyncClient) -> str:
    answer = await http.post("/v1/jobs", json={"job": "pages", "args": {"path": "a.pdf"}})
    job_id: str = answer.json()["id"]
    return job_id


async def test_a_stop_answers_those_who_wait_and_then_ends(
    open_app: App, served: Served, http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    job_id = await submitted(http)
    waiting = asyncio.create_task(http.get(f"/v1/jobs/{job_id}?wait=60"))
    await until(lambda: waited_for(open_app))

    served.server.leave()

    answer = await waiting
    assert (answer.status_code, answer.json()["state"]) == (200, "queued")
    await served.running
    told = [(each.name, each.getMessage()) for each in caplog.records]
    assert [each for each in told if each[0] == "uvicorn.error"] == []
    assert [each for each in told if each[0] == "fencerow.web"] == [
        ("fencerow.web", "the server stops: it takes no new requests, and 1 are under way"),
        ("fencerow.web", "the server has stopped"),
    ]


async def test_who_hangs_up_waits_no_more(open_app: App, served: Served, http: httpx.AsyncClient) -> None:
    job_id = await submitted(http)
    _, writer = await served.raw(
        f"GET /v1/jobs/{job_id}?wait=60 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
    )
    await until(lambda: waited_for(open_app))

    writer.close()

    await until(lambda: not waited_for(open_app))


@pytest.mark.parametrize(("most", "sent", "status"), [(4096, 5_000, 431), (128 * 1024, 100_000, 200)])
async def test_how_large_headers_may_be_is_what_the_setting_says(
    open_app: App, most: int, sent: int, status: int
) -> None:
    object.__setattr__(open_app.config, "web_headers_bytes_max", most)
    fields = b"x-large: %s\r\n" % (b"a" * sent)
    async with serving_on(Server(Gateway(open_app), WebSettings.of(open_app.config))) as served:
        reader, writer = await served.raw(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n" + fields)
        answer = asyncio.create_task(reader.read())
        await until(lambda: answer.done() or served.unread() >= sent)
        writer.write(b"connection: close\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert (await answer).startswith(b"HTTP/1.1 %d" % status)
        writer.close()


async def test_while_it_leaves_only_health_is_answered(open_app: App, door: Door) -> None:
    gateway = Gateway(open_app, authorize=door)
    async with calling(gateway) as http:
        assert (await http.get("/readyz")).status_code == 200
        gateway.leave()
        answers = [(await http.get(path)) for path in ("/livez", "/readyz", "/v1/jobs/x")]

    assert [(each.status_code, each.json().get("code")) for each in answers] == [
        (200, None),
        (503, "FR-873"),
        (503, "FR-873"),
    ]
    assert answers[1].headers["retry-after"]
