"""Steps and signals over HTTP: what a job remembers, going on from one step, and a signal that is sent once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx
import pytest

from fencerow import App, Job
from fencerow.web.tokens.scope import Scope
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import Door

WAIT_S = 60  # the longest that a gateway lets anybody wait
NOBODY = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
async def order(app: App, http: httpx.AsyncClient) -> AsyncIterator[str]:
    """The address of a job that charges, waits for a signal, and ships."""

    @app.job(name="order", queue="orders")
    async def order(job: Job) -> str:
        number = await job.step("charge", charge)
        answer = await job.wait_for("approved")
        return str(await job.step("ship", ship, number, answer["by"]))

    submitted = await http.post("/v1/jobs", json={"job": "order"})
    async with app.worker():
        async with asyncio.timeout(PATIENCE_S):
            while not await app.client.awaits(submitted.json()["id"]):
                await asyncio.sleep(0.01)
        yield submitted.json()["url"]


async def charge() -> int:
    return 7


async def ship(number: int, by: str) -> str:
    return f"{number} for {by}"


async def test_a_signal_is_sent_once_and_steps_are_told(
    app: App, http: httpx.AsyncClient, order: str
) -> None:
    begun = (await http.get(f"{order}/steps")).json()
    assert [(each["name"], each["kind"]) for each in begun["steps"]] == [("charge", "step")]
    assert [(each["signal"], each["until"]) for each in begun["waits"]] == [("approved", None)]
    shown = await http.get(f"{order}/steps/show", params={"name": "charge"})
    assert (shown.json()["result"], shown.json()["attempt"]) == (7, 1)

    key = {"Idempotency-Key": "k"}
    first = await http.post(f"{order}/signals/approved", json={"data": {"by": "ada"}}, headers=key)
    assert (first.status_code, first.json()["woken"]) == (202, True)
    again = await http.post(f"{order}/signals/approved", json={"data": {"by": "ada"}}, headers=key)
    late = again.json()["code"] if again.is_error else again.json()["id"]
    assert late in ("FR-965", first.json()["id"]), "the job may have ended by now"
    assert (await http.get(f"{order}/result", params={"wait": WAIT_S})).json() == "7 for ada"
    sent = (await http.get(f"{order}/signals")).json()["signals"]
    assert [(each["name"], each["sent_by"], bool(each["taken_as"])) for each in sent] == [
        ("approved", "tests", True)
    ]
    done = await http.post(f"{order}/signals/approved", json={})
    assert (done.status_code, done.json()["code"]) == (409, "FR-965")
    noted = [each.person for each in await app.client.audit.aentries() if each.verb == "signalled"]
    assert noted == ["tests"]


async def test_a_repeated_signal_is_the_first_one_and_no_other(http: httpx.AsyncClient, order: str) -> None:
    key = {"Idempotency-Key": "k"}
    first, again = [
        await http.post(f"{order}/signals/later", json={"data": 1}, headers=key) for _ in range(2)
    ]
    assert (first.json()["id"], again.headers["idempotent-replayed"]) == (again.json()["id"], "true")
    slashed = await http.post(f"{order}/signals/{quote('page 1/2', safe='')}", json={"data": 1})
    assert slashed.status_code == 202, slashed.text
    sent = (await http.get(f"{order}/signals")).json()["signals"]
    assert [each["name"] for each in sent] == ["later", "page 1/2"]
    for name, data in (("later", 2), ("other", 1)):
        other = await http.post(f"{order}/signals/{name}", json={"data": data}, headers=key)
        assert (other.status_code, other.json()["code"]) == (409, "FR-206"), other.text
    loud = await http.post(f"{order}/signals/later", json={"data": "x" * 70_000})
    assert (loud.status_code, loud.json()["code"]) == (413, "FR-204"), loud.text
    assert (await http.post(f"{order}/signals/{'x' * 101}", json={})).status_code == 422
    assert len((await http.get(f"{order}/signals")).json()["signals"]) == 2


async def test_a_job_goes_on_from_a_step(app: App, http: httpx.AsyncClient, order: str) -> None:
    await http.post(f"{order}/signals/approved", json={"data": {"by": "ada"}})
    await http.get(f"{order}/result", params={"wait": WAIT_S})
    unknown = await http.post(f"{order}/revive-from", json={"step": "nobody"})
    revived = await http.post(f"{order}/revive-from", json={"step": "ship"})
    assert (revived.status_code, revived.json()["forgotten"]) == (200, ["ship"]), revived.text
    assert (unknown.status_code, unknown.json()["code"]) == (422, "FR-201")
    assert (await http.get(f"{order}/result", params={"wait": WAIT_S})).json() == "7 for ada"
    missing = await http.get(f"{order}/steps/show", params={"name": "nobody"})
    assert (missing.status_code, missing.json()["code"]) == (404, "FR-201")
    noted = [each.verb for each in await app.client.audit.aentries() if each.kind == "job"]
    assert "revived from a step" in noted


async def test_jobs_of_others_have_no_steps_and_take_no_signals(
    http: httpx.AsyncClient, order: str, door: Door
) -> None:
    asked = (("GET", "/steps"), ("GET", "/signals"), ("POST", "/revive-from"), ("POST", "/signals/approved"))
    door.only(Scope.SUBMIT, Scope.OPERATE, queues={"letters"})
    for address in (order, f"/v1/jobs/{NOBODY}"):
        for verb, below in asked:
            body = {"step": "ship"} if "revive" in below else {} if verb == "POST" else None
            answer = await http.request(verb, f"{address}{below}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (404, "FR-301"), (verb, below)
    door.only(Scope.SIGNAL, queues={"orders"})
    assert (await http.post(f"{order}/signals/other", json={})).status_code == 202
    assert (await http.get(f"{order}/signals")).status_code == 403
    door.only(Scope.READ, Scope.SUBMIT)
    for below, body in (("/revive-from", {"step": "ship"}), ("/signals/approved", {})):
        assert (await http.post(f"{order}{below}", json=body)).status_code == 403
    assert [each["name"] for each in (await http.get(f"{order}/signals")).json()["signals"]] == ["other"]
