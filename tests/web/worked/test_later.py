"""Attempts that an endpoint answers later, by the callback: under the fence, once, and without a slot meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from fencerow import App
from fencerow.core.model.state import State
from fencerow.testing import adrain
from fencerow.testing.clock import DatabaseClock
from fencerow.web.gateway.asgi import Gateway
from tests.web.gateway.conftest import Door, calling
from tests.web.worked.stage import LATER, Endpoint, Reply, Request, render_job, says


async def say(http: httpx.AsyncClient, request: Request, verb: str, **body: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {request.token}"}
    json = None if verb == "heartbeat" else body
    return await http.post(f"{request.path}/{verb}", json=json, headers=headers)


async def deferred(app: App, endpoint: Endpoint, **options: Any) -> tuple[str, Request]:
    """A job that waits for the answer of its endpoint, without a slot; and the request."""
    render = render_job(app, endpoint, later=True, **options)
    endpoint.replies(LATER)
    job_id = (await render.asubmit("a.pdf")).id
    (ran,) = await adrain(app)
    assert ran.outcome == "suspended"
    return job_id, endpoint.got[-1]


def refused(answer: httpx.Response) -> tuple[int, str, str]:
    return answer.status_code, answer.json()["code"], answer.json()["reason"]


async def test_an_answer_counts_once_and_the_job_succeeds_with_it(
    app: App, endpoint: Endpoint, http: httpx.AsyncClient
) -> None:
    job_id, request = await deferred(app, endpoint)
    waiting = await app.client.aget(job_id)

    half = await say(http, request, "progress", percent=50, note="page 1")
    first = await say(http, request, "succeed", result={"url": "a.png"})
    again = await say(http, request, "succeed", result={"url": "b.png"})
    other = await say(http, request, "fail", message="too late")
    (ran,) = await adrain(app, check=True)

    assert (waiting.state, waiting.holder) == (State.WAITING, None)
    assert (half.status_code, first.status_code) == (200, 200)
    assert refused(again) == refused(other) == (409, "FR-943", "answered")
    assert (ran.outcome, ran.result, ran.attempt) == ("succeeded", {"url": "a.png"}, 2)
    assert len(endpoint.got) == 1, "what was answered is not sent again"
    assert refused(await say(http, request, "heartbeat")) == (409, "FR-943", "answered")
    assert (await app.client.aget(job_id)).failures == 0


async def test_an_answer_that_comes_before_the_reply_counts_and_the_reply_does_not(
    app: App, endpoint: Endpoint, http: httpx.AsyncClient
) -> None:
    """The endpoint answers by the callback while its reply is under way."""
    loop = asyncio.get_running_loop()
    told: list[httpx.Response] = []

    def quick(request: Request) -> Reply:
        saying = say(http, request, "succeed", result={"by": "callback"})
        told.append(asyncio.run_coroutine_threadsafe(saying, loop).result())
        return says({"by": "reply"}) if len(endpoint.got) == 1 else LATER

    render = render_job(app, endpoint, later=True)
    endpoint.reply = quick
    for _ in range(2):
        await render.asubmit("a.pdf")

    ran = await adrain(app, check=True)

    assert [each.status_code for each in told] == [200, 200]
    assert [each.result for each in ran if each.outcome == "succeeded"] == 2 * [{"by": "callback"}]
    assert [each.outcome for each in ran] == ["succeeded", "succeeded"], "nobody waited"


async def test_a_failure_is_counted_once_and_a_new_attempt_is_sent(
    app: App, endpoint: Endpoint, http: httpx.AsyncClient, clock: DatabaseClock
) -> None:
    job_id, first = await deferred(app, endpoint, attempts_max=3)

    said = await say(http, first, "fail", message="no ink", retry_after_s=5)
    (failed,) = await adrain(app)
    late = await say(http, first, "succeed", result={})
    clock.advance(6)
    await adrain(app)
    second = endpoint.got[-1]
    await say(http, second, "fail", message="no paper", retry=False)
    (last,) = await adrain(app)

    assert said.status_code == 200
    assert failed.outcome == "retried" and failed.delay_s is not None and failed.delay_s >= 5.0
    assert failed.error is not None and "no ink" in failed.error.message
    assert refused(late) == (409, "FR-943", "answered")
    assert (first.data["attempt"], second.data["attempt"], len(endpoint.got)) == (1, 3, 2)
    assert (last.outcome, (await app.client.aget(job_id)).failures) == ("failed", 2)


async def test_a_result_of_another_type_is_refused_and_the_attempt_goes_on(
    app: App, endpoint: Endpoint, http: httpx.AsyncClient
) -> None:
    _, request = await deferred(app, endpoint)

    unfit: tuple[Any, ...] = ("a.png", None, [{}])
    wrong = [await say(http, request, "succeed", result=each) for each in unfit]
    half = await say(http, request, "progress", percent=50)
    right = await say(http, request, "succeed", result={"url": "a.png"})
    late = await say(http, request, "succeed", result="a.png")
    (ran,) = await adrain(app, check=True)

    assert {(each.status_code, each.json()["code"]) for each in wrong} == {(422, "FR-939")}
    assert "dict" in wrong[0].json()["detail"] or "object" in wrong[0].json()["detail"]
    assert (half.status_code, right.status_code) == (200, 200)
    assert late.status_code == 422
    assert (ran.outcome, ran.result) == ("succeeded", {"url": "a.png"})


async def test_a_gateway_that_does_not_know_the_job_leaves_its_result_to_the_worker(
    lite: App, endpoint: Endpoint
) -> None:
    _, request = await deferred(lite, endpoint)

    async with App(lite.config.url) as other, calling(Gateway(other, authorize=Door())) as http:
        said = await say(http, request, "succeed", result="a.png")
    (ran,) = await adrain(lite)

    assert said.status_code == 200
    assert ran.outcome == "failed" and ran.error is not None and "FR-941" in ran.error.message


async def test_silence_fails_the_attempt_and_its_late_answer_is_refused(
    app: App, endpoint: Endpoint, http: httpx.AsyncClient, clock: DatabaseClock
) -> None:
    _, request = await deferred(app, endpoint, answer_s=100, heartbeat_s=30, attempts_max=1)

    clock.advance(25)
    beaten = await say(http, request, "heartbeat")
    clock.advance(25)
    still = await adrain(app)
    clock.advance(10)
    late = await say(http, request, "heartbeat")
    (ran,) = await adrain(app)
    later = await say(http, request, "succeed", result={})

    assert (beaten.status_code, still) == (200, [])
    assert refused(late) == (409, "FR-943", "overdue")
    assert ran.outcome == "failed" and ran.error is not None and "FR-942" in ran.error.message
    assert refused(later) == (409, "FR-943", "ended")


async def test_a_cancel_wins_over_what_the_endpoint_says_after_it(
    app: App, endpoint: Endpoint, http: httpx.AsyncClient
) -> None:
    job_id, request = await deferred(app, endpoint)

    await app.client.acancel(job_id)
    told = [await say(http, request, "heartbeat"), await say(http, request, "succeed", result={})]

    assert [refused(each) for each in told] == 2 * [(409, "FR-943", "cancelled")]
    assert (await app.client.aget(job_id)).state == State.CANCELLED


async def test_only_the_token_of_the_attempt_lets_pass(
    app: App, endpoint: Endpoint, http: httpx.AsyncClient
) -> None:
    _, request = await deferred(app, endpoint)
    forged = {"authorization": f"Bearer {request.token[:-4]}aaaa"}

    without = await http.post(f"{request.path}/succeed", json={})
    wrong = await http.post(f"{request.path}/succeed", json={}, headers=forged)
    other = await http.post(
        f"{request.path[:-1]}2/succeed", json={}, headers={"authorization": f"Bearer {request.token}"}
    )

    assert {(each.status_code, each.json()["code"]) for each in (without, wrong, other)} == {(401, "FR-944")}
    assert await adrain(app) == []


async def test_a_revived_job_is_sent_anew(app: App, endpoint: Endpoint, http: httpx.AsyncClient) -> None:
    """What was answered before the revive is not taken for its answer."""
    job_id, request = await deferred(app, endpoint)
    await say(http, request, "succeed", result={"run": 1})
    await adrain(app, check=True)

    await app.client.arevive(job_id)
    await adrain(app)
    await say(http, endpoint.got[-1], "succeed", result={"run": 2})
    (ran,) = await adrain(app, check=True)

    assert (len(endpoint.got), ran.result) == (2, {"run": 2})


async def test_a_slot_that_is_kept_is_kept(lite: App, endpoint: Endpoint, http_lite: Any) -> None:
    """The job stays running, with its turns."""
    render = render_job(lite, endpoint, later=True, keeps_slot=True, heartbeat_s=30)
    endpoint.replies(LATER)
    handle = await render.asubmit("a.pdf")

    async with lite.worker():
        async with asyncio.timeout(60):
            while not endpoint.got:
                await asyncio.sleep(0.01)
        state = (await lite.client.aget(handle.id)).state
        said = await say(http_lite, endpoint.got[0], "succeed", result={"kept": True})
        result = await handle.aresult(timeout_s=60)

    assert (state, said.status_code, result) == (State.RUNNING, 200, {"kept": True})


async def test_a_slot_that_is_kept_is_kept_no_longer_than_the_attempt_may_last(
    lite: App, endpoint: Endpoint, http_lite: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its wait ends before its time does, and its endpoint is told that it is over: no answer is lost with it."""
    monkeypatch.setattr("fencerow.web.worked.working.before_end_s", lambda _remaining_s: 0.0)
    render = render_job(lite, endpoint, later=True, keeps_slot=True, timeout_s=600, attempts_max=1)
    endpoint.replies(LATER)
    await render.asubmit("a.pdf")

    (ran,) = await adrain(lite)
    late = await say(http_lite, endpoint.got[0], "succeed", result={})

    assert ran.outcome == "failed" and ran.error is not None and "FR-942" in ran.error.message
    assert refused(late)[:2] == (409, "FR-943")
