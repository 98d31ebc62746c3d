"""What is told of a job over HTTP: its result as it was stored, why it has none, its story; and who waits for it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from fencerow import App, Fail, Job
from fencerow.payloads import Seal
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.route import Call
from fencerow.web.tokens.scope import Scope
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import Door, calling, ended
from tests.web.gateway.test_jobs_moves import submitted

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_a_job_without_a_result_says_why(app: App, http: httpx.AsyncClient) -> None:
    failed = (
        await http.post("/v1/jobs", json={"job": "mail", "args": {"to": "x"}, "attempts_max": 1})
    ).json()["id"]
    cancelled = await submitted(http)
    await http.delete(f"/v1/jobs/{cancelled}")
    await ended(app, failed)
    told = {each: (await http.get(f"/v1/jobs/{each}/result")).json() for each in (failed, cancelled)}

    assert [(each["status"], each["code"], each["state"]) for each in told.values()] == [
        (409, "FR-305", "failed"), (409, "FR-306", "cancelled"),
    ]  # fmt: skip
    assert told[failed]["error"] == {
        "type": "ValueError",
        "message": "nobody is called x",
        "code": "permanent_error",
    }
    assert (await http.get(f"/v1/jobs/{failed}")).json()["error"]["message"] == "nobody is called x"


async def test_whoever_waits_is_answered_when_the_job_ends(app: App, http: httpx.AsyncClient) -> None:
    job_id = await submitted(http)
    address = f"/v1/jobs/{job_id}"
    short = await http.get(address, params={"wait": 0.05})
    nothing = await http.get(f"{address}/result", headers={"prefer": "wait=0.05"})
    assert (short.json()["state"], nothing.json()["code"]) == ("queued", "FR-307")
    waits = [
        http.get(address, params={"wait": 60}),
        http.get(address, headers={"prefer": "wait=600"}),
        http.get(f"{address}/result", params={"wait": 60}),
    ]
    async with asyncio.timeout(PATIENCE_S), app.worker():
        seen, preferred, result = await asyncio.gather(*waits)

    assert (seen.json()["state"], preferred.json()["state"], result.json()["pages"]) == (
        "succeeded",
        "succeeded",
        3,
    )
    assert (seen.headers.get("preference-applied"), preferred.headers["preference-applied"]) == (
        None,
        "wait=60",
    )
    for wait in ("nan", "61", "-1", "soon"):
        refused = await http.get(address, params={"wait": wait})
        assert (refused.status_code, refused.json()["where"]) == (422, "?wait")


async def test_a_gateway_that_leaves_answers_who_waits(
    app: App, http: httpx.AsyncClient, gateway: Gateway
) -> None:
    address = f"/v1/jobs/{await submitted(http)}"
    leaving = gateway.standing.leaving
    waits = [asyncio.ensure_future(http.get(f"{address}{more}?wait=60")) for more in ("", "/result")]
    async with asyncio.timeout(PATIENCE_S):
        while len(getattr(leaving, "_waiters")) < 2:  # noqa: B009 - both wait until the job ends, or this is set
            await asyncio.sleep(0.01)
        gateway.leave()
        look, result = await asyncio.gather(*waits)

    assert (look.json()["state"], result.json()["code"]) == ("queued", "FR-307")


async def test_an_ephemeral_job_has_a_result_for_who_waits(app: App, http: httpx.AsyncClient) -> None:
    address = f"/v1/jobs/{await submitted(http, ephemeral=True)}/result"
    wait = asyncio.ensure_future(http.get(address, params={"wait": 60}))
    async with asyncio.timeout(PATIENCE_S):
        while not getattr(app.client, "_poller")._watched:  # noqa: B009
            await asyncio.sleep(0.01)
        async with app.worker():
            result = await wait

    assert (result.status_code, result.json()["pages"]) == (200, 3)


async def test_what_was_removed_during_a_wait_is_gone(
    app: App, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(call: Call, job_id: str, _wait_s: float) -> None:
        await call.client.acancel(job_id)
        await call.client.adelete(job_id)

    monkeypatch.setattr(Call, "until_ended", ends)
    answer = await http.get(f"/v1/jobs/{await submitted(http)}?wait=60")

    assert (answer.status_code, answer.json()["code"]) == (410, "FR-302")


async def test_a_result_comes_as_it_is_stored_and_a_sealed_one_opened(url: str, door: Door) -> None:
    app = App(url, seal=Seal({"k1": b"k" * 32}, marks=b"m" * 32))
    told: dict[str, Any] = {
        "n": 12345678901234567890,
        "text": "ü\u2028</script>",
        "f": 1e-7,
        "list": [None, True],
    }

    @app.job(name="told", queue="documents")
    async def give() -> Any:
        return told

    async with app, calling(Gateway(app, authorize=door)) as http:
        job_id = (await http.post("/v1/jobs", json={"job": "told"})).json()["id"]
        await ended(app, job_id)
        answer = await http.get(f"/v1/jobs/{job_id}/result")
        assert (await app.client.aget(job_id)).result != told

    assert answer.json() == told
    assert "ü" in answer.text
    assert answer.headers["content-type"] == "application/json"


async def test_a_result_that_is_no_json_is_not_handed_on(
    lite_app: App, door: Door, sqlite_path: Path
) -> None:
    async with lite_app, calling(Gateway(lite_app, authorize=door)) as http:
        job_id = await submitted(http)
        await ended(lite_app, job_id)
        with closing(sqlite3.connect(sqlite_path)) as db, db:
            db.execute("UPDATE fencerow_finished_jobs SET result = '{oops'")
        answer = await http.get(f"/v1/jobs/{job_id}/result")

    assert (answer.status_code, answer.json()["code"]) == (409, "FR-308")


async def test_the_trace_goes_with_the_job_and_comes_back(app: App, http: httpx.AsyncClient) -> None:
    seen: dict[str, dict[str, str]] = {}

    @app.job(name="traced", queue="documents")
    async def traced(job: Job) -> None:
        seen[job.id] = dict(job.headers)

    sent = {"traceparent": TRACEPARENT, "tracestate": "a=1", "x-correlation-id": "order-17"}
    answer = await http.post("/v1/jobs", json={"job": "traced"}, headers=sent)
    own = await http.post("/v1/jobs", json={"job": "traced"})
    await ended(app, answer.json()["id"])

    carried = {"correlation-id": "order-17", "traceparent": TRACEPARENT, "tracestate": "a=1"}
    job = (await http.get(answer.headers["location"])).json()
    assert job["headers"] == carried
    assert job["submitted_by"] == "tests"
    assert seen[answer.json()["id"]] == carried
    begun = (await http.get(own.headers["location"])).json()["headers"]
    assert begun["correlation-id"] == own.headers["x-request-id"]
    assert begun["traceparent"].endswith("-00")  # nobody sampled it


async def test_the_story_of_a_job_hides_tracebacks_from_who_may_not_operate(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    @app.job(name="odd", queue="documents", attempts_max=1)
    async def odd(job: Job) -> None:
        await job.log("on it")
        raise Fail("not today")

    job_id = (await http.post("/v1/jobs", json={"job": "odd"})).json()["id"]
    await ended(app, job_id)
    whole = await http.get(f"/v1/jobs/{job_id}/timeline")
    door.only(Scope.READ)
    part = await http.get(f"/v1/jobs/{job_id}/timeline")
    lines = (await http.get(f"/v1/jobs/{job_id}/logs")).json()["lines"]

    assert [each["kind"] for each in part.json()["happened"]] == [
        each["kind"] for each in whole.json()["happened"]
    ]
    assert part.json()["happened"][0] | {"at": ""} == {
        "at": "", "kind": "submitted", "attempt": 0, "actor": "tests", "detail": None,
    }  # fmt: skip
    assert "not today" in part.text
    assert ("traceback" in whole.text, "traceback" in part.text) == (True, False)
    assert [(each["message"], each["attempt"]) for each in lines] == [("on it", 1)]


@pytest.mark.parametrize("job_id", ["x", "..", "%00", "a" * 5000, "01900000-0000-7000-8000-00000000000g"])
async def test_what_is_no_id_is_refused(http: httpx.AsyncClient, job_id: str) -> None:
    answer = await http.get(f"/v1/jobs/{job_id}")
    assert answer.status_code in (404, 422)
