"""Handovers over HTTP: ends taken in order under a fence, waited for, confirmed once, and given up."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import httpx

from fencerow import App
from fencerow.core.errors import StoreUnavailable
from fencerow.core.model.ids import new_id
from fencerow.core.model.packed import Bound
from fencerow.core.model.packing import Packing
from fencerow.testing.clock import clock_of
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door, ended

BOT: dict[str, Any] = {"receiver": "bot"}


class Away(Packing):
    async def aunpack(self, stored: bytes, bound: Bound) -> bytes:
        raise StoreUnavailable("the store is away")


async def submitted(http: httpx.AsyncClient, path: str, key: str = "a") -> str:
    body = {"job": "pages", "args": {"path": path}, "handover": {"key": key, "receiver": "bot"}}
    return str((await http.post("/v1/jobs", json=body)).json()["id"])


async def taken(http: httpx.AsyncClient, **more: object) -> list[dict[str, Any]]:
    answer = await http.post("/v1/handovers/take", json={**BOT, **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["ends"]
    return found


async def confirm(http: httpx.AsyncClient, end: dict[str, Any], **more: object) -> httpx.Response:
    return await http.post(f"/v1/jobs/{end['id']}/confirm", json={**BOT, "fence": end["fence"], **more})


async def test_ends_come_in_the_order_of_their_key_and_the_next_when_one_is_confirmed(
    app: App, http: httpx.AsyncClient
) -> None:
    first, second = await submitted(http, "1"), await submitted(http, "2")
    assert await taken(http) == []
    await ended(app, second)
    await ended(app, first)

    (end,) = await taken(http, limit=5)
    assert await taken(http, limit=5) == []
    assert (end["id"], end["result"], end["state"], end["takes"]) == (
        first, {"path": "1", "pages": 3}, "succeeded", 1,
    )  # fmt: skip
    answers = [(await confirm(http, end)).json() for _ in range(2)]
    assert answers == [{"id": first, "replay": False}, {"id": first, "replay": True}]
    (following,) = await taken(http, limit=5)
    assert following["id"] == second
    nobody = await http.post(f"/v1/jobs/{second}/confirm", json={"fence": following["fence"]})
    assert (nobody.status_code, nobody.json()["code"]) == (404, "FR-831")  # it goes to the bot alone


async def test_whoever_lost_the_lease_confirms_nothing(app: App, http: httpx.AsyncClient) -> None:
    await ended(app, await submitted(http, "1"))
    (lost,) = await taken(http, lease_s=5)
    with closing(clock_of(app.engine)) as clock:
        await asyncio.to_thread(clock.advance, 600)
        (now,) = await taken(http)

        refused = await confirm(http, lost)
        given_up = await http.post(f"/v1/jobs/{lost['id']}/release", json={**BOT, "fence": lost["fence"]})
        assert (refused.status_code, refused.json()["code"]) == (409, "FR-832")
        assert given_up.json()["released"] is False and now["takes"] == 2
        released = await http.post(f"/v1/jobs/{now['id']}/release", json={**BOT, "fence": now["fence"]})
        assert released.json()["released"] is True
        (again,) = await taken(http)
        assert (await confirm(http, again)).json()["replay"] is False


async def test_a_take_whose_answer_was_lost_is_repeated_under_its_id(
    app: App, http: httpx.AsyncClient
) -> None:
    await ended(app, await submitted(http, "1"))
    take_id = new_id()

    lost, again = await taken(http, take=take_id), await taken(http, take=take_id)

    assert [each["fence"] for each in lost] == [each["fence"] for each in again]
    assert await taken(http, take=new_id()) == []


async def test_who_waits_is_answered_when_a_job_ends(app: App, http: httpx.AsyncClient) -> None:
    job_id = await submitted(http, "1")
    waiting = asyncio.create_task(taken(http, wait_s=60))
    await ended(app, job_id)

    assert [each["id"] for each in await waiting] == [job_id]


async def test_failures_and_results_that_cannot_be_read_come_too(app: App, http: httpx.AsyncClient) -> None:
    body = {
        "job": "mail",
        "args": {"to": "x"},
        "attempts_max": 1,
        "handover": {"key": "m", "receiver": "bot"},
    }
    await ended(app, (await http.post("/v1/jobs", json=body)).json()["id"])

    (end,) = await taken(http)

    assert (end["state"], end["result"], end["error"]["type"]) == ("failed", None, "ValueError")
    assert end["unreadable"] is None
    for key in ("a", "b"):
        await ended(app, await submitted(http, key, key))
    app.client.packing = Away()
    ends = await taken(http, limit=5)
    assert [(each["result"], each["unreadable"]) for each in ends] == [(None, "FR-312")] * 2


async def test_what_no_take_answered_is_refused_and_who_may_not_changes_nothing(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    await ended(app, await submitted(http, "1"))
    (end,) = await taken(http)
    for fence in ("1", f"1.{'-' * 36}", "1.x", f"x.{new_id()}", f"{'9' * 19}.{new_id()}"):
        assert (await confirm(http, {**end, "fence": fence})).status_code == 422, fence
    stale = [f"2.{end['fence'][2:]}", f"1.{new_id()}"]
    assert {(await confirm(http, {**end, "fence": each})).status_code for each in stale} == {409}

    door.only(Scope.READ, Scope.SUBMIT, Scope.CANCEL)
    answers = [await http.post("/v1/handovers/take", json=BOT), await confirm(http, end)]
    door.only(Scope.ADMIN, queues={"documents"})
    answers += [await http.post("/v1/handovers/take", json=BOT), await confirm(http, end)]
    assert {(each.status_code, each.json()["code"]) for each in answers} == {(403, "FR-871")}
