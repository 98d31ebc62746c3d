"""Events over HTTP: groups, how far they are behind, what they parked, and delivering it again."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.events import NewEvent, apublish_many, consumers
from fencerow.events.consumers import Aside
from fencerow.events.groups import GroupStart, make_group
from fencerow.events.sequencer import sequence
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door


@pytest.fixture
async def bus(app: App) -> App:
    """Three events, the first of them parked by the group `billing`, which has read it alone."""
    await apublish_many(app, [NewEvent("order.paid", {"secret": number}, "ada") for number in range(3)])
    run = app.engine.arun
    await run(sequence())
    await run(make_group("billing", ["order.*"], partitions=1, start=GroupStart("beginning")))
    held = await run(consumers.hold_partitions("billing", holder=new_id(), name="w", lease_s=30.0))
    error = '{"type":"ValueError","message":"no account","traceback":"/srv/app.py"}'
    await run(
        consumers.advance(held.leases[0], old=0, cursor=1, asides=[Aside(1, 1, "ada", 8, 0.0, True, error)])
    )
    return app


async def test_what_is_parked_is_shown_without_its_data_and_delivered_again(
    bus: App, http: httpx.AsyncClient
) -> None:
    (group,) = (await http.get("/v1/events/groups")).json()["groups"]
    lag = (await http.get("/v1/events/lag", params={"group": "billing"})).json()
    parked = await http.get("/v1/events/parked")
    (found,) = parked.json()["parked"]

    assert (group["name"], group["topics"], group["readers"][0]["cursor"]) == ("billing", ["order.*"], 1)
    assert (lag["groups"][0]["events"], lag["groups"][0]["parked"], lag["log"]["head"]) == (2, 1, 3)
    assert (found["position"], found["topic"], found["deliveries"]) == (1, "order.paid", 8)
    assert (found["error"]["message"], "secret" in parked.text, "/srv" in parked.text) == (
        "no account",
        False,
        False,
    )

    answers = [
        (await http.post("/v1/events/redrive", json={"group": "billing", "positions": [1, 2]})).json()
        for _ in "12"
    ]
    assert [each["positions"] for each in answers] == [[1], []]
    noted = [(each.person, each.via, each.kind) for each in await bus.client.audit.aentries()]
    assert noted == [("tests", "http", "event group")]
    assert (await http.get("/v1/events/parked", params={"group": "billing"})).json()["parked"] == []


async def test_which_events_are_meant_must_be_said_and_be_there(bus: App, http: httpx.AsyncClient) -> None:
    bad: tuple[dict[str, object], ...] = (
        {},
        {"positions": []},
        {"positions": [1], "all": True},
        {"positions": [-1]},
        {"positions": ["1"]},
    )
    for body in bad:
        answer = await http.post("/v1/events/redrive", json={"group": "billing", **body})
        assert (answer.status_code, answer.json()["code"]) == (422, "FR-201"), body
    nobody = (
        http.post("/v1/events/redrive", json={"group": "biling", "all": True}),
        http.get("/v1/events/lag", params={"group": "biling"}),
        http.get("/v1/events/parked", params={"group": "biling"}),
    )
    for answer in await asyncio.gather(*nobody):
        assert (answer.status_code, answer.json()["code"]) == (404, "FR-731")
    assert len((await http.get("/v1/events/parked")).json()["parked"]) == 1


async def test_what_cannot_be_a_group_is_refused(bus: App, http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/events/redrive", json={"group": "´§ö", "all": True})

    assert (answer.status_code, answer.json()["code"]) == (422, "FR-730")


async def test_events_are_for_a_token_of_all_queues(bus: App, http: httpx.AsyncClient, door: Door) -> None:
    redrive = {"group": "billing", "all": True}
    door.only(Scope.READ, Scope.OPERATE, queues={"documents"})
    for path in ("groups", "lag", "parked"):
        assert (await http.get(f"/v1/events/{path}")).json()["code"] == "FR-871"
    assert (await http.post("/v1/events/redrive", json=redrive)).json()["code"] == "FR-871"
    door.only(Scope.READ)
    assert (await http.post("/v1/events/redrive", json=redrive)).status_code == 403
    door.only(Scope.OPERATE)
    assert (await http.post("/v1/events/redrive", json=redrive)).json()["positions"] == [1]
