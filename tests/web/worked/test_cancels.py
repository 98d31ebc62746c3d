"""Endpoints are told that an attempt of theirs was cancelled: signed, once, and no cancel waits for it."""

from __future__ import annotations

import asyncio

from fencerow import App
from fencerow.core.model.state import State
from fencerow.testing import adrain
from fencerow.web.worked.telling import CancelTeller, Sent, take, teller_of
from tests.web.worked.stage import LATER, TILL_LEFT, Endpoint, Reply, Request, render_job, until


def cancels(endpoint: Endpoint) -> list[Request]:
    return [each for each in endpoint.got if each.document["type"] == "job.cancelled"]


async def ended(teller: CancelTeller) -> None:
    await teller.end(60.0)


async def test_an_attempt_whose_request_is_under_way_is_told_and_the_cancel_does_not_wait(
    lite: App, endpoint: Endpoint
) -> None:
    """The endpoint answers neither of the two requests."""
    render = render_job(lite, endpoint, cancel_url=endpoint.url)
    endpoint.reply = lambda request: (
        TILL_LEFT if request.document["type"] == "job.run" else endpoint.hold(request)
    )
    handle = await render.asubmit("a.pdf")

    async with lite.worker():
        await until(lambda: endpoint.got)
        await lite.client.acancel(handle.id)
        await until(lambda: cancels(endpoint))
        record = await until_ended(lite, handle.id)
        endpoint.free.set()

    (told,) = cancels(endpoint)
    assert record is State.CANCELLED, "while its endpoint had not answered"
    assert told.data == {"job": handle.id, "name": render.name, "queue": "render", "attempt": 1}
    assert told.headers["webhook-id"] == f"{handle.id}:1:cancelled"


async def until_ended(app: App, job_id: str) -> State:
    async with asyncio.timeout(60):
        while (state := (await app.client.aget(job_id)).state) is State.RUNNING:
            await asyncio.sleep(0.01)
    return state


async def test_an_attempt_that_answers_later_is_told_once_by_one_of_the_workers_on_whatever_page(
    app: App, endpoint: Endpoint
) -> None:
    render = render_job(app, endpoint, later=True, cancel_url=endpoint.url)
    endpoint.replies(LATER)
    ids = []
    for _ in range(2):
        ids.append((await render.asubmit("a.pdf")).id)
        await adrain(app)  # so the first is the first that is looked at
    teller, other = (CancelTeller(app, page_rows=1) for _ in range(2))
    await teller.tick()
    assert not cancels(endpoint)

    endpoint.replies(Reply(500))
    await app.client.acancel(ids[1])
    await asyncio.gather(teller.tick(), other.tick())
    await teller.tick()
    for each in (teller, other):
        await ended(each)

    assert not await app.engine.arun(take(Sent(ids[1], 1))), "nobody tells it once more"
    assert [each.data["job"] for each in cancels(endpoint)] == [ids[1]], (
        "behind a page of one that still waits"
    )


async def test_nobody_is_told_where_it_was_no_cancel_that_broke_the_request_off(
    lite: App, endpoint: Endpoint
) -> None:
    """A worker that stops breaks it off alike."""
    render = render_job(lite, endpoint, cancel_url=endpoint.url)
    handle = await render.asubmit("a.pdf")
    teller = teller_of(lite)

    teller.interrupted(Sent(handle.id, 0))
    await ended(teller)

    assert not endpoint.got
