"""Queues over HTTP: what the command shows and does, in the name of the token, and for its queues alone."""

from __future__ import annotations

import httpx

from fencerow import App
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door, ended


async def test_a_queue_is_paused_in_the_name_of_the_token_until_it_is_resumed(
    app: App, http: httpx.AsyncClient
) -> None:
    job_id = (await app.asubmit_by_name("pages", {"path": "a"})).id
    paused = await http.post("/v1/queues/pause", json={"queue": "documents", "reason": "a/b"})
    again = await http.post("/v1/queues/pause", json={"queue": "documents"})
    slip = await http.post("/v1/queues/pause", json={"queue": "document/s"})

    (listed, slipped) = (await http.get("/v1/queues")).json()["queues"][::-1]
    assert (slipped["queue"], listed["jobs"]) == ("document/s", {"queued": 1, "running": 0, "waiting": 0})
    assert listed["paused"]["by"] == "tests" and listed["paused"]["reason"] == "a/b"
    assert listed["oldest_due_s"] >= 0
    (known,) = [each for each in await app.client.apaused_queues() if each.name == "documents"]
    assert (known.paused_by, known.reason) == ("tests", "a/b")
    assert (paused.json()["changed"], again.json()["changed"]) == (True, False)
    assert (paused.json()["unknown"], "documents" in slip.json()["unknown"]) == (None, True)

    resumed = await http.post("/v1/queues/resume", json={"queue": "documents"})
    assert resumed.json() == {"queue": "documents", "paused": False, "changed": True, "unknown": None}
    again = await http.post("/v1/queues/resume", json={"queue": "documents"})
    assert again.json()["changed"] is False
    await ended(app, job_id)


async def test_a_token_sees_and_changes_its_own_queues_alone(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    await app.asubmit_by_name("pages", {"path": "a"})
    await app.asubmit_by_name("mail", {"to": "ada"})
    door.only(Scope.READ, Scope.OPERATE, queues={"letters"})

    assert [each["queue"] for each in (await http.get("/v1/queues")).json()["queues"]] == ["letters"]
    for verb in ("pause", "resume"):
        refused = await http.post(f"/v1/queues/{verb}", json={"queue": "documents"})
        assert (refused.status_code, refused.json()["code"]) == (403, "FR-871")
    assert (await http.post("/v1/queues/pause", json={"queue": "letters"})).status_code == 200
    door.only(Scope.READ, queues={"letters"})
    for verb in ("pause", "resume"):
        assert (await http.post(f"/v1/queues/{verb}", json={"queue": "letters"})).status_code == 403
    assert [each.name for each in await app.client.apaused_queues()] == ["letters"]


async def test_what_no_queue_can_be_called_changes_nothing(app: App, http: httpx.AsyncClient) -> None:
    for body in ({}, {"queue": ""}, {"queue": "a" * 101}, {"queue": "a\nb"}, {"queue": "a", "colour": 1}):
        answer = await http.post("/v1/queues/pause", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "FR-201"), body
    assert await app.client.apaused_queues() == []
