"""Attempts that an endpoint works in its reply: what it is told, and what each reply makes of the job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fencerow import App, Backoff
from fencerow.errors import DeclarationError, InvalidArguments, JobCancelled, WebhookUrlRefused
from fencerow.testing import adrain
from fencerow.web.worked.declared import worked_over_http
from tests.kit.pace import PATIENCE_S
from tests.web.worked.stage import (
    NO_REPLY,
    SECRET,
    SECRET_ENV,
    TILL_LEFT,
    Endpoint,
    Reply,
    render_job,
    says,
)


async def ended(app: App, job_id: str) -> tuple[str, Any, str]:
    """How it ended: its state, its result, the message of its error."""
    record = await app.client.aget(job_id)
    return str(record.state), record.result, record.error.message if record.error else ""


async def test_the_reply_is_the_result_and_the_request_tells_the_attempt(
    app: App, endpoint: Endpoint
) -> None:
    render = render_job(app, endpoint, timeout_s=60)
    endpoint.replies(says({"url": "a.png"}))
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    handle = await render.using(tags=["eu"], metadata={"order": 7}, headers=trace).asubmit("a.pdf")

    (ran,) = await adrain(app, check=True)

    assert (ran.outcome, ran.result) == ("succeeded", {"url": "a.png"})
    (request,) = endpoint.got  # its signature was verified by the endpoint
    assert request.headers["webhook-id"] == f"{handle.id}:1"
    assert request.headers["traceparent"].split("-")[1] == trace["traceparent"].split("-")[1]
    told = request.data
    assert request.document["type"] == "job.run"
    assert (told["job"], told["name"], told["queue"], told["attempt"]) == (handle.id, "render", "render", 1)
    assert told["args"] == {"document": "a.pdf", "pages": 1}, "the endpoint does not know the default"
    assert (told["tags"], told["metadata"], told["callback"]) == (["eu"], {"order": 7}, None)
    assert told["deadline_at"] > request.document["timestamp"]


def test_a_submit_is_checked_by_the_declared_types(app: App, endpoint: Endpoint) -> None:
    with pytest.raises(InvalidArguments):
        render_job(app, endpoint).submit("a.pdf", pages="three")


AGAIN, NEVER = ("retried", "failed")
PROBLEM = {"content_type": "application/problem+json"}


# By the name of its document: the reply, what becomes of the attempt, what its error tells, the pause that it asks for.
REPLIES: dict[str, tuple[Reply, str, str, float]] = {
    "not found": (
        says({"title": "No", "detail": "no such\npage"}, 404, **PROBLEM),
        NEVER,
        "404: no such page",
        0.0,
    ),
    "gone": (says({}, 410), NEVER, "answered 410", 0.0),
    "moved": (says({}, 301, location="http://127.0.0.1/other"), NEVER, "answered 301", 0.0),
    "too many": (says({}, 429, retry_after="3600"), AGAIN, "answered 429", 3600.0),
    "conflict": (says({}, 409), AGAIN, "answered 409", 0.0),
    "busy": (Reply(503, b"<html>busy</html>"), AGAIN, "answered 503", 0.0),
    "broken": (says({"retry": False, "detail": "broken"}, 500), NEVER, "500: broken", 0.0),
    "patience": (says({"retry": True, "retry_after_s": 7200}, 400), AGAIN, "answered 400", 7200.0),
    "later": (says({}, 202), NEVER, "names no gateway", 0.0),
    "a page": (Reply(200, b"<html>"), AGAIN, "no JSON", 0.0),
    "of another type": (says([1, 2]), NEVER, "does not fit", 0.0),
    "too long": (Reply(200, b'{"a": "' + b"x" * 600 + b'"}'), NEVER, "larger than", 0.0),
    "cut": (Reply(200, b'{"a": 1', {"content-length": "100"}), AGAIN, "ended before", 0.0),
    "nothing": (NO_REPLY, AGAIN, "did not answer", 0.0),
}


async def test_what_a_reply_makes_of_the_attempt(lite: App, endpoint: Endpoint) -> None:
    render = render_job(lite, endpoint, reply_bytes_max=500, attempts_max=2, backoff=Backoff(base_s=1000.0))
    endpoint.reply = lambda request: REPLIES[request.data["args"]["document"]][0]
    names = {(await render.asubmit(name)).id: name for name in REPLIES}

    ran = {names[each.id]: each for each in await adrain(lite)}

    assert ran.keys() == REPLIES.keys()
    for name, (_, outcome, told, delay_s) in REPLIES.items():
        error = ran[name].error
        assert ran[name].outcome == outcome and error is not None, name
        assert told in error.message and SECRET not in error.message and "127.0.0.1" not in error.message
        assert not delay_s or delay_s <= (ran[name].delay_s or 0.0) < 1.5 * delay_s, name


async def test_an_endpoint_that_is_too_slow_fails_the_attempt(lite: App, endpoint: Endpoint) -> None:
    render = render_job(lite, endpoint, reply_s=0.05, attempts_max=1)
    endpoint.reply = endpoint.hold
    await render.asubmit("a.pdf")

    (ran,) = await adrain(lite)
    endpoint.free.set()

    assert ran.error is not None and "took too long" in ran.error.message


async def test_a_cancel_of_a_running_attempt_closes_the_connection(app: App, endpoint: Endpoint) -> None:
    render = render_job(app, endpoint)
    endpoint.replies(TILL_LEFT)
    handle = await render.asubmit("a.pdf")

    async with app.worker():
        async with asyncio.timeout(PATIENCE_S):
            while not endpoint.got:
                await asyncio.sleep(0.01)
        await app.client.acancel(handle.id)
        heard = await asyncio.to_thread(endpoint.left.wait, PATIENCE_S)
        with pytest.raises(JobCancelled):
            await handle.aresult(timeout_s=PATIENCE_S)

    assert heard


async def test_a_worker_without_the_secret_uses_up_no_attempt(
    lite: App, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    render = render_job(lite, endpoint)
    monkeypatch.delenv(SECRET_ENV)
    await render.asubmit("a.pdf")

    (ran,) = await adrain(lite)

    assert (ran.outcome, ran.delay_s, endpoint.got) == ("snoozed", 60.0, [])


def test_what_cannot_work_is_refused_where_it_is_declared(lite: App, endpoint: Endpoint) -> None:
    async def runs(document: str) -> None: ...

    worked = worked_over_http(lite, endpoint.url, secret_env=SECRET_ENV)
    with pytest.raises(DeclarationError, match="never called"):
        worked(runs)
    with pytest.raises(WebhookUrlRefused):
        worked_over_http(lite, "http://169.254.169.254/", secret_env=SECRET_ENV)
    with pytest.raises(DeclarationError, match="name of an environment variable") as refused:
        worked_over_http(lite, endpoint.url, secret_env=SECRET)
    assert SECRET not in str(refused.value)
    with pytest.raises(DeclarationError, match="without callbacks"):
        worked_over_http(lite, endpoint.url, secret_env=SECRET_ENV, heartbeat_s=5)
