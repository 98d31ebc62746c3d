"""The gateway on a real socket: who is slow, who hangs up, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import httpx
import pytest

from fencerow import App
from fencerow.supervisor.probes import Address
from fencerow.web.gateway import server as serving
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.server import Server, listening
from fencerow.web.settings import WebSettings
from tests.web.checked import Checked
from tests.web.gateway.conftest import Door, calling

PATIENCE_S = 60


@dataclass
class Served:
    """A server of this event loop."""

    server: Server
    port: int
    running: asyncio.Task[None]

    async def raw(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection over which this was sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        await writer.drain()
        return reader, writer

    def unread(self) -> int:
        """How many bytes have come that are no whole request yet."""
        found = self.server._uvicorn.server_state.connections
        return sum(len(each.conn.trailing_data[0]) for each in found if isinstance(each, serving.Bounded))


@pytest.fixture
async def lite(lite_app: App) -> AsyncIterator[App]:
    async with lite_app:
        yield lite_app


@contextlib.asynccontextmanager
async def serving_on(server: Server) -> AsyncIterator[Served]:
    """It serves on a port of its own while this lasts."""
    found = listening(Address("127.0.0.1", 0))
    running = asyncio.create_task(server.run([found]))
    try:
        yield Served(server, found.getsockname()[1], running)
    finally:
        server.leave()
        server.leave()
        async with asyncio.timeout(PATIENCE_S):
            await running


@pytest.fixture
async def served(lite: App, door: Door) -> AsyncIterator[Served]:
    settings = replace(WebSettings(), web_drain_s=PATIENCE_S)
    async with serving_on(Server(Gateway(lite, authorize=door), settings)) as found:
        yield found


@pytest.fixture
async def http(lite: App, served: Served) -> AsyncIterator[httpx.AsyncClient]:
    transport = Checked(httpx.AsyncHTTPTransport(), Gateway(lite).openapi)
    address = f"http://127.0.0.1:{served.port}"
    async with httpx.AsyncClient(transport=transport, base_url=address, timeout=PATIENCE_S) as made:
        yield made


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not fact():
            await asyncio.sleep(0.01)


async def submitted(http: httpx.AsyncClient) -> str:
    answer = await http.post("/v1/jobs", json={"job": "pages", "args": {"path": "a.pdf"}})
    job_id: str = answer.json()["id"]
    return job_id


def waited_for(app: App) -> bool:
    return bool(app.client._poller._watched)


async def test_a_stop_answers_those_who_wait_and_then_ends(
    lite: App, served: Served, http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    job_id = await submitted(http)
    waiting = asyncio.create_task(http.get(f"/v1/jobs/{job_id}?wait=60"))
    await until(lambda: waited_for(lite))

    served.server.leave()

    answer = await waiting
    assert (answer.status_code, answer.json()["state"]) == (200, "queued")
    await served.running
    told = [(each.name, each.getMessage()) for each in caplog.records]
    assert [each for each in told if each[0] == "uvicorn.error"] == []
    assert [each for each in told if each[0] == "fencerow.web"] == [
        ("fencerow.web", "the gateway stops: it takes no new requests, and 1 are under way"),
        ("fencerow.web", "the gateway has stopped"),
    ]


async def test_who_hangs_up_waits_no_more(lite: App, served: Served, http: httpx.AsyncClient) -> None:
    job_id = await submitted(http)
    _, writer = await served.raw(
        f"GET /v1/jobs/{job_id}?wait=60 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
    )
    await until(lambda: waited_for(lite))

    writer.close()

    await until(lambda: not waited_for(lite))


@pytest.mark.parametrize("begun", [b"", b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "])
async def test_headers_that_never_end_cost_the_connection_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, served: Served, http: httpx.AsyncClient, begun: bytes
) -> None:
    monkeypatch.setattr(serving, "HEADERS_S", 0.2)
    reader, writer = await served.raw(begun)

    assert (await http.get("/livez")).status_code == 200
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read() == b""  # no byte more, and no answer
    writer.close()


async def test_a_second_request_of_a_connection_is_bounded_too(
    monkeypatch: pytest.MonkeyPatch, served: Served
) -> None:
    reader, writer = await served.raw(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr(serving, "HEADERS_S", 0.2)
    writer.write(b"GET /livez HTTP/1.1\r\n")
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read() == b""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@pytest.mark.parametrize(("most", "sent", "status"), [(4096, 5_000, 431), (128 * 1024, 100_000, 200)])
async def test_how_large_headers_may_be_is_what_the_setting_says(
    lite: App, most: int, sent: int, status: int
) -> None:
    object.__setattr__(lite.config, "web_headers_bytes_max", most)
    fields = b"x-large: %s\r\n" % (b"a" * sent)
    async with serving_on(Server(Gateway(lite), WebSettings.of(lite.config))) as served:
        reader, writer = await served.raw(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n" + fields)
        answer = asyncio.create_task(reader.read())
        await until(lambda: answer.done() or served.unread() >= sent)
        writer.write(b"connection: close\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert (await answer).startswith(b"HTTP/1.1 %d" % status)
        writer.close()


async def test_while_it_leaves_only_health_is_answered(lite: App, door: Door) -> None:
    gateway = Gateway(lite, authorize=door)
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


async def test_who_reads_nothing_of_an_answer_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, lite: App, served: Served, http: httpx.AsyncClient
) -> None:
    monkeypatch.setattr(serving, "WRITE_S", 0.2)
    job_id = (await lite.asubmit_by_name("pages", {"path": "a"})).id
    with socket.create_connection(("127.0.0.1", served.port)) as caller:
        # The answers of many requests, none of which is read: more than the sockets hold.
        asking = b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 200
        caller.settimeout(PATIENCE_S)
        caller.sendall(asking)

        await until(lambda: served.server._uvicorn.server_state.total_requests > 0)
        await until(lambda: not served.server._uvicorn.server_state.connections)

    assert (await http.get(f"/v1/jobs/{job_id}")).status_code == 200


async def test_who_reads_slowly_but_enough_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "WRITE_S", 0.01)
    transport = Reading(3.5 * serving.WRITE_BYTES_MIN, takes=serving.WRITE_BYTES_MIN)
    waiting = serving.Unread(transport, asyncio.get_running_loop())

    waiting.begin()
    await until(lambda: transport.is_aborted)

    assert transport.left == 0.5 * serving.WRITE_BYTES_MIN  # the last look found nothing more taken


class Reading(asyncio.WriteTransport):
    """What waits for a caller who takes so much between two looks, as long as there is so much."""

    def __init__(self, left: float, *, takes: int) -> None:
        super().__init__()
        self.left = left
        self.is_aborted = False
        self._takes = takes
        self._looks = 0

    def get_write_buffer_size(self) -> int:
        self._looks += 1
        if self._looks % 2 == 0 and self.left >= self._takes:
            self.left -= self._takes
        return int(self.left)

    def abort(self) -> None:
        self.is_aborted = True
