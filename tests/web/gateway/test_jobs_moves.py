"""Moves over HTTP: each answers by what the guarded move did, and a token of some queues moves nothing out of them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from fencerow import App, Job
from fencerow.web.tokens.scope import Scope
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import Door, ended

NOBODY = "01900000-0000-7000-8000-000000000000"


async def submitted(http: httpx.AsyncClient, **more: object) -> str:
    answer = await http.post("/v1/jobs", json={"job": "pages", "args": {"path": "a.pdf"}, **more})
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json()["id"]
    return job_id


async def test_a_waiting_job_is_changed_and_made_due(app: App, http: httpx.AsyncClient) -> None:
    job_id = await submitted(http, run_at="2100-01-01T00:00:00Z")
    address = f"/v1/jobs/{job_id}"
    wanted = {"priority": 7, "queue": "night", "args": {"path": "b.pdf", "copies": 2}}
    changed = (await http.patch(address, json=wanted)).json()
    again = (await http.patch(address, json=wanted)).json()
    later = (await http.patch(address, json={"run_at": "2101-01-01T00:00:00Z"})).json()
    due = (await http.post(f"{address}/run-now")).json()

    assert changed["changes"]["priority"] == {"before": 0, "after": 7}
    assert changed["changes"]["queue"] == {"before": "documents", "after": "night"}
    assert (again["changes"], changed["run_at"], later["run_at"]) == (
        {}, "2100-01-01T00:00:00.000000Z", "2101-01-01T00:00:00.000000Z",
    )  # fmt: skip
    assert due["changes"]["run_at"]["before"] == "2101-01-01T00:00:00.000000Z"
    stored = await app.client.aget(job_id)
    assert (stored.priority, stored.queue, stored.args) == (7, "night", {"path": "b.pdf", "copies": 2})
    actors = {each.actor for each in await app.client.atimeline(job_id)}
    assert actors == {"tests"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "FR-201"),
        ({"priority": 101}, "FR-201"),
        ({"delay_s": 1, "run_at": "2100-01-01T00:00:00Z"}, "FR-201"),
        ({"args": {"path": 1}}, "FR-203"),
        ({"state": "failed"}, "FR-201"),
        ({"queue": None}, "FR-201"),
    ],
)
async def test_a_change_that_does_not_fit_is_refused(http: httpx.AsyncClient, body: Any, code: str) -> None:
    job_id = await submitted(http)
    answer = await http.patch(f"/v1/jobs/{job_id}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


async def test_who_claims_first_wins_over_a_cancel_and_the_answer_says_so(
    app: App, http: httpx.AsyncClient
) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @app.job(name="long", queue="documents")
    async def long(job: Job) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    job_id = (await http.post("/v1/jobs", json={"job": "long"})).json()["id"]
    address = f"/v1/jobs/{job_id}"
    async with asyncio.timeout(PATIENCE_S), app.worker():
        await started.wait()
        for refused in (
            await http.delete(address, params={"only": "queued"}),
            await http.patch(address, json={"priority": 1}),
            await http.post(f"{address}/run-now"),
            await http.post(f"{address}/revive"),
            await http.post(f"{address}/delete"),
        ):
            told = refused.json()
            assert (refused.status_code, told["code"], told["state"]) == (409, "FR-303", "running")
        asked = await http.delete(address)
        assert (asked.status_code, asked.json()) == (202, {"id": job_id, "answer": "requested"})
        job = (await http.get(address, params={"wait": 60})).json()

    assert (job["state"], stopped.is_set()) == ("cancelled", True)


async def test_a_finished_job_is_revived_and_deleted(app: App, http: httpx.AsyncClient) -> None:
    job_id = await submitted(http, key="k")
    address = f"/v1/jobs/{job_id}"
    await ended(app, job_id)
    revived = await http.post(f"{address}/revive")
    assert (revived.status_code, revived.json()["answer"]) == (200, "revived")
    twice = await http.post(f"{address}/revive")
    assert (twice.status_code, twice.json()["state"]) == (409, "queued")
    await ended(app, job_id)

    deleted = await http.post(f"{address}/delete")
    again = await http.post(f"{address}/delete")

    assert (deleted.status_code, again.status_code) == (200, 404)
    assert (await http.get(address)).status_code == 404
    assert await submitted(http, key="k") == job_id


VERBS = [
    ("DELETE", "", None),
    ("PATCH", "", {"priority": 1}),
    ("POST", "/revive", None),
    ("POST", "/run-now", None),
    ("POST", "/delete", None),
    ("GET", "", None),
    ("GET", "/result", None),
    ("GET", "/timeline", None),
    ("GET", "/logs", None),
]


async def test_a_job_of_others_is_as_none_for_every_verb(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    theirs = await submitted(http)
    ours = (await http.post("/v1/jobs", json={"job": "mail", "args": {"to": "x"}})).json()["id"]
    door.only(Scope.SUBMIT, Scope.READ, Scope.CANCEL, Scope.OPERATE, queues={"letters"})

    for method, more, body in VERBS:
        told = []
        for job_id in (theirs, NOBODY):
            answer = await http.request(method, f"/v1/jobs/{job_id}{more}", json=body)
            told.append((answer.status_code, answer.json()["detail"].replace(job_id, "")))
        assert told[0] == told[1] and told[0][0] == 404, (method, more)
    moved = await http.patch(f"/v1/jobs/{ours}", json={"queue": "documents"})

    assert (moved.status_code, (await app.client.aget(ours)).queue) == (403, "letters")
    assert (await app.client.aget(theirs)).state.value == "queued"


async def test_each_verb_needs_its_scope(http: httpx.AsyncClient, door: Door) -> None:
    job_id = await submitted(http)
    needs = {"GET": {Scope.READ}, "DELETE": {Scope.CANCEL}, "PATCH": {Scope.OPERATE}, "POST": {Scope.OPERATE}}

    for method, more, body in VERBS:
        door.only(*(set(Scope) - needs[method] - {Scope.ADMIN, Scope.OPERATE}))  # the two include others
        answer = await http.request(method, f"/v1/jobs/{job_id}{more}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "FR-871")
