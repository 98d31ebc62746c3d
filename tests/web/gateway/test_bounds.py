"""How much one caller may ask over HTTP, and by which names: how often, how many at once, and how many that wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from fencerow import App
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.roles import Role
from fencerow.web.gateway.asgi import Gateway
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.visiting import Doorkeeper
from tests.web.gateway.conftest import Door, calling
from tests.web.gateway.serving import until, waited_for


@pytest.fixture
def url(sqlite_path: Path) -> str:
    """The database does not matter here."""
    return f"sqlite:///{sqlite_path}"


def bounded(app: App, door: Door, **settings: Any) -> httpx.AsyncClient:
    """A caller of a gateway with these settings."""
    for name, value in settings.items():
        object.__setattr__(app.config, name, value)
    return calling(Gateway(app, authorize=door))


def is_too_much(answer: httpx.Response) -> bool:
    return (answer.status_code, answer.json()["code"], "retry-after" in answer.headers) == (
        429,
        "FR-859",
        True,
    )


async def test_a_caller_is_served_so_often_whether_the_token_is_good_or_not(app: App, door: Door) -> None:
    async with bounded(app, door, web_rate_per_second=0.001, web_rate_burst=2) as http:
        answers = [await http.get("/v1/jobs") for _ in range(3)]
        assert [each.status_code for each in answers[:2]] == [200, 200] and is_too_much(answers[2])
        door.grant = None  # of who has no token that is good, the address counts
        answers = [await http.get("/v1/jobs") for _ in range(3)]
        assert [each.status_code for each in answers[:2]] == [401, 401] and is_too_much(answers[2])
        assert (await http.get("/livez")).status_code == 200


async def test_a_caller_has_so_many_requests_under_way(
    app: App, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, begun = asyncio.Event(), asyncio.Event()

    async def slowly(**_: object) -> list[object]:
        begun.set()
        await goes_on.wait()
        return []

    async with bounded(app, door, web_requests_caller_max=1) as http:
        monkeypatch.setattr(app.client, "alist_jobs", slowly)
        first = asyncio.ensure_future(http.get("/v1/jobs"))
        await begun.wait()
        assert is_too_much(await http.get("/v1/queues"))
        goes_on.set()
        assert (await first).status_code == 200
        assert (await http.get("/v1/queues")).status_code == 200


async def test_those_who_wait_have_seats_of_their_own(app: App, door: Door) -> None:
    job = (await app.asubmit_by_name("pages", {"path": "a"})).id
    async with bounded(app, door, web_waiting_caller_max=1, web_requests_caller_max=1) as http:
        waiting = asyncio.ensure_future(http.get(f"/v1/jobs/{job}", params={"wait": 60}))
        await until(lambda: waited_for(app))
        assert is_too_much(await http.get(f"/v1/jobs/{job}", params={"wait": 60}))
        assert (await http.delete(f"/v1/jobs/{job}")).status_code == 200, "it keeps no others out"
        async with asyncio.timeout(PATIENCE_S):
            assert (await waiting).json()["state"] == "cancelled"


async def test_a_request_that_the_database_holds_is_answered_in_time(
    app: App, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(**_: object) -> list[object]:
        await asyncio.Event().wait()
        return []

    async with bounded(app, door, web_request_s=0.05) as http:
        monkeypatch.setattr(app.client, "alist_jobs", never)
        async with asyncio.timeout(PATIENCE_S):
            late = await http.get("/v1/jobs")
    assert (late.status_code, late.json()["code"], late.json()["repeat"]) == (503, "FR-874", "ask")


async def test_who_asks_under_a_name_that_is_not_ours_is_refused(app: App, door: Door) -> None:
    """A foreign page whose name suddenly leads to our address has its own name there."""
    async with bounded(app, door) as http:
        foreign = await http.get("/v1/jobs", headers={"host": "evil.example"})
    assert (foreign.status_code, foreign.json()["code"]) == (421, "FR-858")


async def test_an_address_that_is_no_text_is_refused_and_nothing_is_stored(app: App, door: Door) -> None:
    async with bounded(app, door) as http:
        at = (await http.post("/v1/jobs", json={"job": "pages", "args": {"path": "a"}})).json()["url"]
        refused = [
            await http.post(f"{at}/signals/%FF", json={}),
            await http.get("/v1/jobs?tag=%C3%28"),
            await http.get("/livez?%ED%A0%80"),
            await http.get("/v1/jobs?tag=a%C3&limit=1"),
        ]
        kept = await http.post(f"{at}/signals/%C3%A9", json={})
        sent = (await http.get(f"{at}/signals")).json()["signals"]
        board = Dashboard(app, authorize=Doorkeeper(Role.READ))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(board), base_url="http://127.0.0.1"
        ) as page:
            pages = [await page.get("/jobs/%FF"), await page.get("/jobs?q=%FF"), await page.get("/none/%FF")]
        await board.aclose()

    assert [(each.status_code, each.json()["code"]) for each in refused] == [(400, "FR-858")] * 4
    assert kept.status_code == 202 and [each["name"] for each in sent] == ["é"]
    assert [(each.status_code, "FR-858" in each.text) for each in pages] == [(400, True)] * 3
