"""Workers over HTTP: looked at, and given orders in the name of the token."""

from __future__ import annotations

import asyncio

import httpx

from fencerow import App
from fencerow.web.tokens.scope import Scope
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import Door


async def test_a_worker_is_paused_resumed_and_drained_in_the_name_of_the_token(
    app: App, http: httpx.AsyncClient
) -> None:
    worker = app.worker(name="here/1")
    running = asyncio.ensure_future(worker.run())
    async with asyncio.timeout(PATIENCE_S):
        while not (listed := (await http.get("/v1/workers")).json()["workers"]):
            await asyncio.sleep(0.01)
    (found,) = listed
    assert (found["name"], found["state"], found["queues"]) == ("here/1", "alive", ["documents", "letters"])

    paused = await http.post("/v1/workers/pause", json={"worker": "here/1", "reason": "a move"})
    resumed = await http.post("/v1/workers/resume", json={"worker": found["id"]})
    again = await http.post("/v1/workers/resume", json={"worker": found["id"]})
    shown = (await http.get("/v1/workers/show", params={"worker": "here/1"})).json()

    assert (paused.json()["wanted"]["paused"], resumed.json()["wanted"]["paused"]) == (True, False)
    assert (resumed.json()["given"], again.json()["given"]) == (True, False)
    assert (shown["worker"]["wanted_by"], shown["jobs"]) == ("tests", [])
    drained = await http.post("/v1/workers/drain", json={"worker": "here/1", "within_s": 0})
    assert drained.status_code == 200, drained.text
    noted = {(each.person, each.via) for each in await app.client.audit.aentries(kind="worker")}
    assert noted == {("tests", "http")}
    async with asyncio.timeout(PATIENCE_S):
        await running
    assert (await http.get("/v1/workers")).json()["workers"] == []
    (former,) = (await http.get("/v1/workers", params={"state": "all"})).json()["workers"]
    assert (former["id"], former["state"], former["running"]) == (found["id"], "retired", None)
    gone = await http.post("/v1/workers/pause", json={"worker": found["id"]})
    assert (gone.status_code, gone.json()["code"]) == (409, "FR-602")


async def test_a_worker_that_is_not_there_or_not_for_this_token(http: httpx.AsyncClient, door: Door) -> None:
    missing = await http.get("/v1/workers/show", params={"worker": "nobody"})
    assert (missing.status_code, missing.json()["code"]) == (404, "FR-601")
    for body in ({}, {"worker": ""}, {"worker": "a", "within_s": -1}, {"worker": "a", "within_s": "soon"}):
        assert (await http.post("/v1/workers/drain", json=body)).status_code == 422, body
    door.only(Scope.READ, Scope.OPERATE, queues={"letters"})
    for path in ("/v1/workers", "/v1/workers/show?worker=a"):
        assert (await http.get(path)).json()["code"] == "FR-871"
    for verb in ("pause", "resume", "drain"):
        assert (await http.post(f"/v1/workers/{verb}", json={"worker": "a"})).json()["code"] == "FR-871"
    door.only(Scope.READ)
    assert (await http.post("/v1/workers/drain", json={"worker": "a"})).status_code == 403
