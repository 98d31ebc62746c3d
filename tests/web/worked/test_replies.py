"""Attempts that an endpoint works in its reply: what it is told, and what each reply makes of the job."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow import App
from fencerow.core.errors import InvalidArguments
from fencerow.errors import DeclarationError, WebhookUrlRefused
from fencerow.testing import adrain
from fencerow.web.worked.declared import worked_over_http
from tests.web.worked.stage import NO_REPLY, SECRET, SECRET_ENV, Endpoint, Reply, render_job, says


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


@pytest.mark.parametrize(
    ("reply", "outcome", "told", "delay_s"),
    [
        (says({"title": "No", "detail": "no such\npage"}, 404, **PROBLEM), NEVER, "404: no such page", None),
        (says({}, 410), NEVER, "answered 410", None),
        (says({}, 301, location="http://127.0.0.1/other"), NEVER, "answered 301", None),
        (says({}, 429, retry_after="120"), AGAIN, "answered 429", 120.0),
        (says({}, 409), AGAIN, "answered 409", None),
        (Reply(503, b"<html>busy</html>"), AGAIN, "answered 503", None),
        (says({"retry": False, "detail": "broken"}, 500), NEVER, "500: broken", None),
        (says({"retry": True, "retry_after_s": 7.5}, 400), AGAIN, "answered 400", 7.5),
        (says({}, 202), NEVER, "names no gateway", None),
        (Reply(200, b"<html>"), AGAIN, "no JSON", None),
        (says([1, 2]), NEVER, "does not fit", None),
        (Reply(200, b'{"a": "' + b"x" * 600 + b'"}'), NEVER, "larger than", None),
        (Reply(200, b'{"a": 1', {"content-length": "100"}), AGAIN, "ended before", None),
        (NO_REPLY, AGAIN, "did not answer", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_a_reply_makes_of_the_attempt(
    lite: App, endpoint: Endpoint, reply: Reply, outcome: str, told: str, delay_s: float | None
) -> None:
    render = render_job(lite, endpoint, reply_bytes_max=500, attempts_max=2)
    endpoint.replies(reply)
    await render.asubmit("a.pdf")

    (ran, *_) = await adrain(lite)

    assert ran.outcome == outcome and ran.error is not None
    assert told in ran.error.message
    assert delay_s is None or (ran.delay_s is not None and ran.delay_s >= delay_s)
    assert SECRET not in ran.error.message and "127.0.0.1" not in ran.error.message


async def test_an_endpoint_that_is_too_slow_fails_the_attempt(lite: App, endpoint: Endpoint) -> None:
    render = render_job(lite, endpoint, reply_s=0.05, attempts_max=1)
    endpoint.reply = endpoint.hold
    await render.asubmit("a.pdf")

    (ran,) = await adrain(lite)
    endpoint.free.set()

    assert ran.error is not None and "took too long" in ran.error.message


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
