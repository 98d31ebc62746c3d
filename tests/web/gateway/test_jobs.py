"""Jobs over HTTP: every verb does what the library's does, and says so in HTTP's words."""

from __future__ import annotations

import httpx

from fencerow import App
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door, ended


async def submitted(http: httpx.AsyncClient, **more: object) -> str:
    answer = await http.post("/v1/jobs", json={"job": "pages", "args": {"path": "a.pdf"}, **more})
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json()["id"]
    return job_id


async def test_from_submit_to_result(app: App, http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/jobs", json={"job": "pages", "args": {"path": "a.pdf"}, "priority": 5})
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/jobs/{answer.json()['id']}")
    address = answer.headers["location"]
    early = await http.get(f"{address}/result")
    assert (early.status_code, early.json()["code"]) == (409, "FR-307")

    await ended(app, answer.json()["id"])

    job = (await http.get(address)).json()
    assert (job["state"], job["priority"], job["queue"]) == ("succeeded", 5, "documents")
    assert (await http.get(f"{address}/result")).json() == {"path": "a.pdf", "pages": 3}


async def test_a_repeat_is_answered_alike_and_another_payload_is_refused(http: httpx.AsyncClient) -> None:
    key = {"idempotency-key": "invoice-17"}
    body = {"job": "pages", "args": {"path": "a.pdf"}}
    first = await http.post("/v1/jobs", json=body, headers=key)
    again = await http.post("/v1/jobs", json=body, headers=key)
    other = await http.post("/v1/jobs", json={"job": "pages", "args": {"path": "b.pdf"}}, headers=key)

    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    assert (other.status_code, other.json()["code"]) == (409, "FR-206")


async def test_cancel_answers_by_what_it_did(app: App, http: httpx.AsyncClient) -> None:
    job_id = await submitted(http)
    first = await http.delete(f"/v1/jobs/{job_id}")
    again = await http.delete(f"/v1/jobs/{job_id}")
    nobody = await http.delete("/v1/jobs/01900000-0000-7000-8000-000000000000")

    assert (first.status_code, first.json()["answer"]) == (200, "cancelled")
    assert (again.status_code, again.json()["code"], again.json()["state"]) == (409, "FR-303", "cancelled")
    assert nobody.status_code == 404
    timeline = await app.client.atimeline(job_id)
    assert timeline[-1].actor == "tests"


async def test_what_is_in_another_queue_looks_like_what_is_not_there(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    theirs = await submitted(http)
    door.only(Scope.SUBMIT, Scope.READ, Scope.CANCEL, queues={"letters"})
    nobody = theirs[:-4] + ("0000" if theirs[-4:] != "0000" else "1111")

    for method in ("GET", "DELETE"):
        found, missing = (
            await http.request(method, f"/v1/jobs/{theirs}"),
            await http.request(method, f"/v1/jobs/{nobody}"),
        )
        hide = {"request_id": "", "detail": ""}
        assert found.status_code == 404
        assert found.json() | hide == missing.json() | hide
        assert found.json()["detail"].replace(theirs, "") == missing.json()["detail"].replace(nobody, "")
    assert (await http.post("/v1/jobs", json={"job": "pages", "args": {"path": "a"}})).status_code == 403
    assert (await app.client.aget(theirs)).state.value == "queued"
