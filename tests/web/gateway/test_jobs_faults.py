"""Submits and cancels over HTTP while the database, the network or the caller fails, or others do the same."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, MutableMapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from fencerow import App, Config
from fencerow.testing.postgres import PostgresServer
from fencerow.web.gateway.asgi import Gateway
from fencerow_proof.network.proxy import FaultProxy
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import Door, calling, mail, pages

PAGES = {"job": "pages", "args": {"path": "a.pdf"}}


@pytest.fixture
async def far(proxy: FaultProxy, tcp_server: PostgresServer) -> AsyncIterator[App]:
    """An app whose database is reached through a network that can be broken."""
    url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
    async with App(url, config=Config.load({}, url=url)) as made:
        made.job(name="pages", queue="documents")(pages)
        made.client.patience_s = 0.2
        yield made


@pytest.fixture
async def caller(far: App, door: Door) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(Gateway(far, authorize=door)) as made:
        yield made


async def test_a_database_that_is_away_is_told_and_nothing_is_stored(
    proxy: FaultProxy, far: App, caller: httpx.AsyncClient
) -> None:
    first = await caller.post("/v1/jobs", json=PAGES)
    before = len(await far.client.alist_jobs())
    proxy.refuse_new()
    proxy.cut_all()
    async with asyncio.timeout(PATIENCE_S):
        answers = await asyncio.gather(
            caller.post("/v1/jobs", json=PAGES, headers={"idempotency-key": "away"}),
            caller.post("/v1/jobs:batch", json={"jobs": [PAGES]}),
            caller.get(first.headers["location"]),
            caller.delete(first.headers["location"]),
            caller.get("/readyz"),
        )
    proxy.heal()

    for answer in answers:
        told = answer.json()
        assert (answer.status_code, told["repeat"]) == (503, "yes"), told
        assert int(answer.headers["retry-after"]) > 0
        assert "127.0.0.1" not in answer.text
    again = await caller.post("/v1/jobs", json=PAGES, headers={"idempotency-key": "away"})
    assert (again.status_code, "idempotent-replayed" in again.headers) == (202, False)
    assert len(await far.client.alist_jobs()) == before + 1


async def test_a_lost_answer_is_no_202_and_no_refusal_and_its_repeat_finds_the_job(
    proxy: FaultProxy, far: App, caller: httpx.AsyncClient
) -> None:
    body, key = {**PAGES, "tags": ["lost"]}, {"idempotency-key": "lost"}
    before = {each.id for each in await far.client.alist_jobs()}
    proxy.cut_after_reply_to("COMMIT")
    proxy.refuse_new()  # whoever asks again does not come through
    async with asyncio.timeout(PATIENCE_S):
        doubt = await caller.post("/v1/jobs", json=body, headers=key)
    proxy.heal()
    told = doubt.json()
    again = await caller.post("/v1/jobs", json=body, headers=key)

    assert (doubt.status_code, told["code"], told["repeat"]) == (503, "FR-503", "ask"), told
    assert told["job_ids"] == [again.json()["id"]]
    assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
    assert {each.id for each in await far.client.alist_jobs()} - before == {again.json()["id"]}


async def test_a_request_that_takes_too_long_is_given_up(
    proxy: FaultProxy, tcp_server: PostgresServer, door: Door
) -> None:
    url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
    async with App(url, config=Config.load({}, url=url, web_request_s=0.5)) as app:
        app.job(name="pages", queue="documents")(pages)
        async with calling(Gateway(app, authorize=door)) as http:
            proxy.black_hole()
            async with asyncio.timeout(PATIENCE_S):
                answer = await http.post("/v1/jobs", json=PAGES)
            proxy.heal()

    assert (answer.status_code, answer.json()["code"], answer.json()["repeat"]) == (503, "FR-874", "ask")
    assert answer.headers["retry-after"]


async def test_a_caller_that_hangs_up_in_a_submit_gets_one_job(
    app: App, gateway: Gateway, http: httpx.AsyncClient
) -> None:
    body = b'{"job": "pages", "args": {"path": "gone.pdf"}}'
    messages: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": body, "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(_message: MutableMapping[str, Any]) -> None:
        raise OSError("nobody is there")

    scope = {
        "type": "http", "method": "POST", "path": "/v1/jobs", "raw_path": b"/v1/jobs", "query_string": b"",
        "headers": [
            (b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"idempotency-key", b'"gone"'),
        ],
        "root_path": "", "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }  # fmt: skip
    with pytest.raises(OSError, match="nobody"):
        await gateway(scope, receive, send)
    again = await http.post(
        "/v1/jobs", content=body, headers={"idempotency-key": "gone", "content-type": "application/json"}
    )

    assert again.headers["idempotent-replayed"] == "true"
    assert [each.id for each in await app.client.alist_jobs()] == [again.json()["id"]]


async def test_of_two_submits_under_one_key_one_is_new(url: str, door: Door) -> None:
    async with App(url) as one, App(url) as other:
        for each in (one, other):
            each.job(name="mail", queue="letters")(mail)
        async with (
            calling(Gateway(one, authorize=door)) as here,
            calling(Gateway(other, authorize=door)) as there,
        ):
            for number in range(5):
                body, key = {"job": "mail", "args": {"to": "x"}}, {"idempotency-key": f"k-{number}"}
                pair = await asyncio.gather(
                    *(each.post("/v1/jobs", json=body, headers=key) for each in (here, there))
                )
                assert [each.status_code for each in pair] == [202, 202]
                assert pair[0].content == pair[1].content
                assert sum("idempotent-replayed" in each.headers for each in pair) == 1
        assert len(await one.client.alist_jobs()) == 5


async def test_a_cancel_beside_a_claim_is_answered_by_what_happened(
    app: App, http: httpx.AsyncClient
) -> None:
    ran: list[str] = []
    go = asyncio.Event()

    @app.job(name="short", queue="documents")
    async def short(number: str) -> None:
        ran.append(number)
        await go.wait()

    body = {"jobs": [{"job": "short", "args": {"number": str(number)}} for number in range(10)]}
    told = (await http.post("/v1/jobs:batch", json=body)).json()["jobs"]
    async with asyncio.timeout(PATIENCE_S), app.worker(slots=2):
        answers = await asyncio.gather(*(http.delete(each["url"]) for each in told))
        go.set()
        ends = await asyncio.gather(*(http.get(each["url"], params={"wait": 60}) for each in told))

    assert {each.status_code for each in answers} <= {200, 202, 409}
    for number, (answer, end) in enumerate(zip(answers, ends, strict=True)):
        job = end.json()
        if answer.status_code == 200:
            assert (str(number) in ran, job["state"]) == (False, "cancelled")
        else:
            assert str(number) in ran
            assert (job["state"] in ("cancelled", "succeeded"), job["attempt"]) == (True, 1)


async def test_what_a_trigger_refuses_is_told_once_and_for_all(
    lite_app: App, door: Door, migrated_path: Path
) -> None:
    """503 would be sent again and again."""
    with closing(sqlite3.connect(migrated_path)) as connection:
        connection.execute(
            "CREATE TRIGGER rule BEFORE INSERT ON fencerow_jobs BEGIN SELECT RAISE(IGNORE); END"
        )
    async with lite_app, calling(Gateway(lite_app, authorize=door)) as caller:
        answer = await caller.post("/v1/jobs", json=PAGES)

    told = answer.json()
    assert (answer.status_code, told["code"], told["repeat"]) == (422, "FR-952", "no")
    assert "trigger" not in answer.text, "what the database says is for the log"
