"""Schedules over HTTP: looked at, paused, resumed and run now, in the name of the token."""

from __future__ import annotations

import httpx
import pytest

from fencerow import App
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door


@pytest.fixture
async def scheduled(app: App) -> App:
    for name in ("nightly", "weekly"):
        await app.schedules.aput(name, app.jobs["pages"].call(path="secret.pdf"), cron="0 3 * * *")
    return app


async def test_a_schedule_is_looked_at_paused_resumed_and_run(
    scheduled: App, http: httpx.AsyncClient
) -> None:
    name = {"name": "nightly"}
    paused = await http.post("/v1/schedules/pause", json={**name, "reason": "a move"})
    shown = await http.get("/v1/schedules/show", params=name)
    run = await http.post("/v1/schedules/run", json=name)
    resumed = await http.post("/v1/schedules/resume", json=name)
    fires = (await http.get("/v1/schedules/next", params={**name, "count": 3})).json()["fires"]

    assert (paused.json(), resumed.json()["changed"]) == ({**name, "entity": None, "changed": 1}, 1)
    said = shown.json()["schedule"]
    assert (said["paused_by"], said["pause_reason"], said["queue"]) == ("tests", "a move", "documents")
    assert "secret" not in shown.text
    (made,) = run.json()["runs"]
    job = await scheduled.client.aget(made["job_id"])
    assert (job.name, job.args["path"]) == ("pages", "secret.pdf")
    (tick,) = (await http.get("/v1/schedules/show", params=name)).json()["ticks"]
    assert (tick["job_id"], tick["made"], tick["made_by"]) == (made["job_id"], "job", "tests")
    assert len({each["fires"] for each in fires}) == 3
    assert all(each["starts"] == each["fires"] for each in fires)


async def test_pages_of_schedules(scheduled: App, http: httpx.AsyncClient) -> None:
    first = (await http.get("/v1/schedules", params={"limit": 1})).json()
    second = (await http.get("/v1/schedules", params={"limit": 1, **first["next"]})).json()

    assert [each["name"] for each in first["schedules"] + second["schedules"]] == ["nightly", "weekly"]
    assert second["next"] is None


async def test_a_schedule_that_is_not_there_or_not_for_this_token(
    scheduled: App, http: httpx.AsyncClient, door: Door
) -> None:
    for verb in ("pause", "resume", "run"):
        missing = await http.post(f"/v1/schedules/{verb}", json={"name": "nobody"})
        assert (missing.status_code, missing.json()["code"]) == (404, "FR-824")
    for query in ("", "?name=weekly&count=0", "?name=a%00", "?name=weekly&x=1"):
        assert (await http.get(f"/v1/schedules/next{query}")).status_code == 422, query
    door.only(Scope.READ, Scope.OPERATE, queues={"documents"})
    for path in ("/v1/schedules", "/v1/schedules/show?name=weekly", "/v1/schedules/next?name=weekly"):
        assert (await http.get(path)).json()["code"] == "FR-871"
    for verb in ("pause", "resume", "run"):
        assert (await http.post(f"/v1/schedules/{verb}", json={"name": "weekly"})).json()["code"] == "FR-871"
    door.only(Scope.READ)
    assert (await http.post("/v1/schedules/run", json={"name": "weekly"})).status_code == 403
