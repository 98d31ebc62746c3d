"""Webhooks of others at the gateway: one job for each, stored before it is answered; all else is refused."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import fastapi
import httpx
import pytest

from fencerow import App, Config, Job
from fencerow.errors import DeclarationError, SecretMissing
from fencerow.testing import adrain, drain
from fencerow.testing.postgres import PostgresServer
from fencerow.web import GitHub, InboundWebhook, receive_webhooks
from fencerow.web.gateway import hooks
from fencerow.web.gateway.asgi import Gateway
from fencerow_proof.network.proxy import FaultProxy
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import calling
from tests.web.inbound.conftest import declare
from tests.web.inbound.senders import Pairs, github, standard, stripe

BODY = b'{"id": "evt_1", "type": "paid", "amount": 7}'


async def post(
    http: httpx.AsyncClient, hook: str, pairs: Pairs, body: bytes = BODY, base: str = "/v1/hooks"
) -> httpx.Response:
    headers = [("content-type", "application/json"), *pairs]
    return await http.post(f"{base}/{hook}", content=body, headers=headers)


async def test_each_sender_s_webhook_is_one_job_that_gets_all_of_it(
    app: App, http: httpx.AsyncClient
) -> None:
    taken = [
        await post(http, "github", [*github(BODY), ("X-GitHub-Hook-ID", "7")]),
        await post(http, "stripe", stripe(BODY)),
        await post(http, "others", [*standard(BODY), ("X-Correlation-Id", "c-1")]),
    ]

    assert [(each.status_code, each.json()["repeated"]) for each in taken] == [(202, False)] * 3
    jobs = [await app.client.aget(each.json()["job"]) for each in taken]
    webhooks = [(job.args or {})["webhook"] for job in jobs]
    assert [(each["hook"], each["id"], each["kind"]) for each in webhooks] == [
        ("github", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "push"),
        ("stripe", "evt_1", "paid"),
        ("others", "msg_1", "paid"),
    ]
    assert all(each["payload"] == json.loads(BODY) for each in webhooks)
    assert [each["sent_at"] is None for each in webhooks] == [True, False, False]
    assert (webhooks[0]["headers"], webhooks[1]["headers"]) == ({"x-github-hook-id": "7"}, {})
    assert jobs[0].tags == ["hook:github"]
    assert jobs[2].headers is not None and jobs[2].headers["correlation-id"] == "c-1"
    async with asyncio.timeout(PATIENCE_S):
        await app.worker().run(until_idle=True)
    assert await app.client.handle(jobs[1].id).aresult() == "paid of stripe"


async def test_what_comes_again_is_answered_alike_and_makes_no_second_job(
    app: App, http: httpx.AsyncClient
) -> None:
    """At once and later, signed anew, in other words, and after its job has ended."""
    again = BODY.replace(b"7", b"8")
    at_once = await asyncio.gather(*(post(http, "others", standard(BODY, at=None)) for _ in range(10)))
    later = [await post(http, "others", standard(each, at=time.time() - 20), each) for each in (BODY, again)]
    async with asyncio.timeout(PATIENCE_S):
        await app.worker().run(until_idle=True)
    later.append(await post(http, "others", standard(BODY)))

    told = [each.json() for each in (*at_once, *later)]
    assert {each.status_code for each in (*at_once, *later)} == {202}
    assert len({each["job"] for each in told}) == 1
    assert sum(not each["repeated"] for each in told) == 1
    assert [each.headers["idempotent-replayed"] for each in later] == ["true"] * 3
    assert len(await app.client.alist_jobs()) == 1
    same_id = BODY.replace(b"evt_1", b"msg_1")
    other = await post(http, "stripe", stripe(same_id), same_id)
    assert other.json()["repeated"] is False, "another sender has ids of its own"


@pytest.fixture
def lite(migrated_path: Path) -> App:
    made = App(f"sqlite:///{migrated_path}", config=Config(web_body_bytes_max=2048, web_body_keys_max=100))
    declare(made)
    return made


async def test_what_is_not_genuine_or_cannot_be_read_is_refused_and_nothing_is_stored(lite: App) -> None:
    bad_json = [b"{", b'{"a": 1, "a": 2}', b'{"a": NaN}', b'"\\u0000"', b"[" * 100 + b"]" * 100]
    headers = github(BODY)
    refused: list[tuple[str, Any, tuple[int, str]]] = [
        ("altered", ("github", headers, BODY + b" "), (400, "FR-972")),
        ("no signature", ("github", headers[:2]), (400, "FR-972")),
        ("wrong scheme", ("stripe", headers), (400, "FR-972")),
        ("too old", ("stripe", stripe(BODY, at=time.time() - 400)), (400, "FR-972")),
        ("no id", ("stripe", stripe(b"{}"), b"{}"), (422, "FR-974")),
        ("too large", ("github", github(b" " * 4096), b" " * 4096), (413, "FR-855")),
        *((str(body), ("github", github(body), body), (400, "FR-858")) for body in bad_json),
        ("a bomb of headers", ("github", [*headers, *[("x-a", "b")] * 200]), (431, "FR-855")),
        ("long headers", ("github", [*headers, ("x-a", "b" * 40_000)]), (431, "FR-855")),
    ]
    async with lite, calling(Gateway(lite)) as http:
        for name, given, wanted in refused:
            answer = await post(http, *given)
            assert (answer.status_code, answer.json()["code"]) == wanted, name
        form = await http.post("/v1/hooks/github", content=b"payload=%7B%7D", headers=dict(headers))
        unknown = await post(http, "gitlab", headers)
        read = await http.get("/v1/hooks/github")
        stored = await lite.client.alist_jobs()

    assert (form.status_code, form.json()["code"]) == (415, "FR-857")
    assert [unknown.status_code, read.status_code] == [404, 405]
    assert stored == []


async def test_where_the_answer_of_the_database_is_lost_or_late_it_is_not_taken(
    proxy: FaultProxy, tcp_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql://app:{tcp_server.password}@127.0.0.1:{proxy.port}/app"
    async with App(url, config=Config.load({}, url=url)) as app:
        declare(app)
        app.client.patience_s = 0.2
        before = len(await app.client.alist_jobs(tags=["hook:github"]))
        async with calling(Gateway(app)) as http, asyncio.timeout(PATIENCE_S):
            proxy.cut_after_reply_to("COMMIT")
            proxy.refuse_new()
            lost = await post(http, "github", github(BODY, delivery="b"))
            proxy.heal()
            monkeypatch.setattr(hooks, "ANSWER_S", 0.5)
            proxy.black_hole()
            stalled = await post(http, "github", github(BODY, delivery="c"))
            proxy.heal()
            monkeypatch.undo()
            again = [await post(http, "github", github(BODY, delivery=each)) for each in "bc"]
        jobs = await app.client.alist_jobs(tags=["hook:github"])

    assert [each.status_code for each in (lost, stalled)] == [503] * 2
    assert [each.json()["repeat"] for each in (lost, stalled)] == ["ask", "ask"]
    assert all(int(each.headers["retry-after"]) for each in (lost, stalled))
    assert [each.status_code for each in again] == [202] * 2
    assert again[0].json()["repeated"]
    assert len(jobs) == before + 2


async def test_an_application_of_one_s_own_may_mount_nothing_but_the_hooks(lite: App) -> None:
    host, only = fastapi.FastAPI(), Gateway(lite, only_hooks=True)
    host.mount("/in", only)
    async with lite, calling(only, host, "/in") as http:
        taken = await post(http, "github", github(BODY), base="/in")
        jobs = await http.get("/in/v1/jobs")
        await adrain(lite)
        assert await lite.client.handle(taken.json()["job"]).aresult() == "push of github"

    assert taken.status_code == 202
    assert jobs.status_code == 404


def test_a_gateway_without_the_secret_is_not_made_and_a_worker_needs_none(
    lite: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OF_STRIPE")

    with pytest.raises(SecretMissing, match="OF_STRIPE"):
        Gateway(lite)
    drain(lite)


def test_what_cannot_be_declared_is_refused(lite: App) -> None:
    take, scheme = lite.jobs["take"], GitHub("OF_GITHUB")

    @lite.job
    async def other(job: Job, number: int) -> None: ...

    for given in (
        {"name": "github"},
        {"name": "a/b"},
        {"name": "x", "job": other},
        {"name": "x", "headers": ["a b"]},
    ):
        with pytest.raises(DeclarationError):
            receive_webhooks(lite, **{"scheme": scheme, "job": take, **given})  # type: ignore[arg-type]


def test_a_webhook_can_be_made_by_hand_to_try_a_handler() -> None:
    assert InboundWebhook("github", "1").payload is None
