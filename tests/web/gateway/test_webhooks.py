"""Webhooks over HTTP: endpoints made and changed with secrets that are told once, deliveries listed and sent again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from fencerow import App
from fencerow.web import verify_webhook
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door
from tests.web.webhooks.stage import Receiver, app_at, end, hooks_of, is_signed, receiving

ENDPOINTS, SHOP = "/v1/webhooks/endpoints", {"name": "shop"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
async def app(url: str, receiver: Receiver) -> AsyncIterator[App]:
    async with app_at(url, receiver.url, actor="ada") as made:
        yield made


async def verb(http: httpx.AsyncClient, name: str, **more: object) -> httpx.Response:
    return await http.post(f"{ENDPOINTS}/{name}", json={**SHOP, **more})


async def test_an_endpoint_is_made_changed_and_removed_in_the_name_of_the_token(
    app: App, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    made = await http.post(ENDPOINTS, json={**SHOP, "url": receiver.url, "queues": ["mail"]})
    again = await http.post(ENDPOINTS, json={**SHOP, "url": receiver.url})
    listed = (await http.get(ENDPOINTS)).json()["endpoints"]

    assert made.status_code == 201 and listed == [made.json()["endpoint"]]
    assert listed[0] | {"name": "shop", "queues": ["mail"], "changed_by": "tests", "version": 1} == listed[0]
    assert (again.status_code, again.json()["code"]) == (409, "FR-864")
    changed = (await verb(http, "change", timeout_s=30, queues=None, version=1)).json()
    assert (changed["timeout_s"], changed["queues"], changed["url"]) == (30.0, None, receiver.url)
    assert (await verb(http, "change", timeout_s=40, version=1)).status_code == 409
    assert [(await verb(http, "disable", reason="moves")).json()["changed"] for _ in range(2)] == [
        True,
        False,
    ]
    assert (await http.get(f"{ENDPOINTS}/show", params=SHOP)).json()["reason"] == "moves"
    assert (await verb(http, "enable")).json() == {"name": "shop", "changed": True}
    assert (await verb(http, "remove")).status_code == 200
    gone = [await verb(http, each) for each in ("remove", "change", "rotate", "enable", "test")]
    assert {(each.status_code, each.json()["code"]) for each in gone} == {(404, "FR-863")}


async def test_a_secret_is_told_where_it_is_made_and_nowhere_else(
    app: App, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    first = (await http.post(ENDPOINTS, json={**SHOP, "url": receiver.url})).json()["secret"]
    second = (await verb(http, "rotate")).json()["secret"]

    assert await hooks_of(app).asecrets("shop") == [second, first]
    shown = [await http.get(ENDPOINTS), await http.get(f"{ENDPOINTS}/show", params=SHOP)]
    shown += [await verb(http, "change", with_result=True), await verb(http, "rotate")]
    assert shown[-1].status_code == 409
    assert (await verb(http, "retire")).json()["changed"] is True
    assert await hooks_of(app).asecrets("shop") == [second]
    assert not any(each in answer.text for each in (first, second) for answer in shown)


async def test_of_a_key_pair_the_public_key_is_told(
    app: App, http: httpx.AsyncClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await http.post(ENDPOINTS, json={**SHOP, "url": receiver.url, "asymmetric": True})
    rotated = await verb(http, "rotate")
    assert (await verb(http, "test")).json()["taken"] is True
    keys = [made.json()["secret"], rotated.json()["secret"]]
    for key in keys:
        verify_webhook(receiver.got[0].headers, receiver.got[0].body, key)

    assert {each[:5] for each in keys} == {"whpk_"}
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    answers = [await http.post(ENDPOINTS, json={"name": "b", "url": receiver.url, "asymmetric": True})]
    answers += [await verb(http, "test")]
    assert {(each.status_code, "fencerow[seal]" in each.json()["fix"]) for each in answers} == {(422, True)}


async def test_what_cannot_be_an_endpoint_is_refused_and_makes_nothing(
    app: App, http: httpx.AsyncClient
) -> None:
    for more, code in (
        ({"url": "http://127.0.0.1/"}, "FR-861"),
        ({"url": "https://shop.example.com/", "events": ["ended"]}, "FR-201"),
        ({"url": "https://shop.example.com/", "timeout_s": 301}, "FR-201"),
        ({"url": "https://shop.example.com/", "secret": "whsec_short"}, "FR-201"),
        ({"url": "https://shop.example.com/", "colour": 1}, "FR-201"),
    ):
        answer = await http.post(ENDPOINTS, json={**SHOP, **more})
        assert (answer.status_code, answer.json()["code"]) == (422, code), more
    assert await hooks_of(app).aknown() == []


async def test_an_endpoint_is_tried_from_the_gateway(
    app: App, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    secret = (await http.post(ENDPOINTS, json={**SHOP, "url": receiver.url})).json()["secret"]
    taken = (await verb(http, "test")).json()
    receiver.answer = lambda _got: (500, {})
    refused = (await verb(http, "test")).json()

    assert (taken["taken"], taken["status"], taken["failure"]) == (True, 200, None)
    assert (refused["taken"], refused["status"]) == (False, 500)
    (got, _) = receiver.got
    assert got.document["type"] == "webhook.test" and is_signed(got, secret)
    assert (await hooks_of(app).aget("shop")).failures == 0


async def test_pages_of_deliveries_leave_none_out_though_an_event_is_told_to_several(
    app: App, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    for name in ("a", "b: ü", "c"):
        await hooks_of(app).aadd(name, receiver.url)
    ids = await asyncio.to_thread(end, app, "ada", "bob")

    seen: list[tuple[str, str]] = []
    address: str | None = "/v1/webhooks/deliveries?limit=2&state=delivered"
    while address is not None:
        answer = await http.get(address)
        seen += [(each["ended_id"], each["endpoint"]) for each in answer.json()["deliveries"]]
        address = answer.links["next"]["url"] if answer.json()["next"] else None
    assert sorted(seen) == sorted((each, name) for each in ids for name in ("a", "b: ü", "c"))
    assert len(seen) == len(set(seen)) == 6
    of_one = await http.get("/v1/webhooks/deliveries", params={"job": ids[0], "endpoint": "c"})
    assert [each["attempts"] for each in of_one.json()["deliveries"]] == [1]
    for cursor in ("x", "MTI", "!!!!", "Og"):
        answer = await http.get("/v1/webhooks/deliveries", params={"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (422, "FR-201"), cursor


@pytest.mark.parametrize("until", ["0.5", "1796000000", "2026-11-29"])
async def test_a_number_is_no_instant(http: httpx.AsyncClient, until: str) -> None:
    answer = await http.get("/v1/webhooks/deliveries", params={"until": until})

    assert (answer.status_code, answer.json()["code"], answer.json()["where"]) == (422, "FR-201", "?until")


async def test_what_failed_is_counted_and_sent_again_under_its_id(
    app: App, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    await hooks_of(app).aadd("shop", receiver.url, attempts_max=1)
    receiver.answer = lambda _got: (500, {})
    await asyncio.to_thread(end, app, "ada", "bob")
    receiver.answer = lambda _got: (204, {})
    failed = (await http.get("/v1/webhooks/deliveries?state=failed")).json()["deliveries"]

    path = "/v1/webhooks/redeliver"
    would = await http.post(path, json={"endpoint": "shop", "dry_run": True})
    one = await http.post(path, json={"webhook_id": failed[0]["webhook_id"]})
    rest = await http.post(path, json={"since": failed[-1]["created_at"]})
    nothing = await http.post(path, json={"state": "failed"})
    await asyncio.to_thread(end, app)

    assert [each.json()["count"] for each in (would, one, rest)] == [2, 1, 1]
    assert (nothing.status_code, nothing.json()["code"]) == (422, "FR-201")
    assert sorted(receiver.ids()[:2]) == sorted(receiver.ids()[2:])
    asked = {"endpoint": "shop", "event": failed[0]["event_id"]}
    attempts = (await http.get("/v1/webhooks/attempts", params=asked)).json()["attempts"]
    assert [(each["number"], each["status"], each["failure"]) for each in attempts] == [
        (1, 500, "status_500"), (2, 204, None),
    ]  # fmt: skip
    await hooks_of(app).adisable("shop")
    assert (await http.post(path, json={"endpoint": "shop"})).json()["code"] == "FR-864"


async def test_tokens_for_some_queues_and_those_who_only_look_change_nothing(
    app: App, http: httpx.AsyncClient, door: Door, receiver: Receiver
) -> None:
    await hooks_of(app).aadd("shop", receiver.url)
    verbs = ("change", "rotate", "retire", "enable", "disable", "remove", "test")
    looks = (ENDPOINTS, f"{ENDPOINTS}/show?name=shop", "/v1/webhooks/deliveries")

    door.only(Scope.READ)
    assert [(await http.get(each)).status_code for each in looks] == [200] * 3
    answers = [await verb(http, each) for each in verbs]
    answers += [await http.post(ENDPOINTS, json={"name": "b", "url": receiver.url})]
    door.only(Scope.ADMIN, queues={"mail"})
    answers += [await verb(http, each) for each in verbs] + [await http.get(each) for each in looks]
    answers += [await http.post("/v1/webhooks/redeliver", json={"endpoint": "shop"})]
    answers += [await http.post(ENDPOINTS, json={"name": "b", "url": receiver.url})]

    assert {(each.status_code, each.json()["code"]) for each in answers} == {(403, "FR-871")}
    assert [(each.name, each.version, each.state) for each in await hooks_of(app).aknown()] == [
        ("shop", 1, "enabled")
    ]
    assert receiver.got == []
