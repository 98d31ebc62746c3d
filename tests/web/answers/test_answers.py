"""The result in place or a handle, within a bound that holds for the commit too: in the library, and over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from fencerow import App, JobFailed
from fencerow.errors import AnswerBusy, InvalidInput
from fencerow.web import Answered, Later, answer
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.tokens.scope import Scope
from tests.kit.pace import PATIENCE_S, slower
from tests.web.answers.conftest import Lock
from tests.web.gateway.conftest import Door, ended

PAGES = {"job": "pages", "args": {"path": "a.pdf"}}
RESULT = {"path": "a.pdf", "pages": 3}


def called(app: App, **options: Any) -> Any:
    return app.jobs["pages"].using(**options).call("a.pdf")


async def test_a_result_that_comes_in_time_is_the_answer_and_else_a_handle_is(app: App) -> None:
    await app.client.alist_jobs()  # the tables were looked at
    later = await answer(app, called(app), within_s=slower(2.0))
    assert isinstance(later, Later)
    async with app.worker():
        assert await later.handle.aresult(PATIENCE_S) == RESULT
        found = await answer(app, called(app), within_s=PATIENCE_S)
        with pytest.raises(JobFailed, match="nobody is called x"):
            await answer(app, app.jobs["mail"].using(attempts_max=1).call("x"), within_s=PATIENCE_S)

    assert isinstance(found, Answered) and (found.result, found.id) == (RESULT, found.id)
    assert len(await app.client.alist_jobs()) == 3


async def test_while_nothing_can_be_stored_busy_is_told_in_time_and_a_repeat_makes_one_job(
    app: App, locked: Lock
) -> None:
    await app.asubmit(called(app))  # the tables were looked at
    clock = asyncio.get_running_loop().time
    with locked():
        began = clock()
        with pytest.raises(AnswerBusy) as caught:
            await answer(app, called(app), within_s=0.3)
        took_s = clock() - began
    (own,) = caught.value.job_ids

    again = await answer(app, called(app, id=own), within_s=slower(2.0))
    assert took_s < PATIENCE_S / 10  # and not as long as the database is locked
    assert isinstance(again, Later) and again.handle.id == own
    assert len([each for each in await app.client.alist_jobs() if each.id == own]) == 1


async def test_a_caller_who_goes_away_loses_nothing(app: App) -> None:
    own = "0192f0c0-0000-7000-8000-00000000abcd"
    waiting = asyncio.create_task(answer(app, called(app, id=own), within_s=PATIENCE_S))
    async with asyncio.timeout(PATIENCE_S):
        while not await app.client.alist_jobs():
            await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})

    await ended(app, own)
    assert await app.client.handle(own).aresult(0) == RESULT


async def test_what_cannot_be_answered_in_place_is_refused(app: App) -> None:
    for within_s in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="within_s"):
            await answer(app, called(app), within_s=within_s)
    with pytest.raises(InvalidInput, match="connection"):
        await answer(app, called(app, connection=object()), within_s=1)
    assert await app.client.alist_jobs() == []


async def test_a_submit_that_asks_to_wait_is_answered_with_the_end_or_a_place_to_look(
    app: App, http: httpx.AsyncClient
) -> None:
    later = await http.post("/v1/jobs", json=PAGES, params={"wait": 0.05}, headers={"idempotency-key": "a"})
    plain = await http.post("/v1/jobs", json=PAGES)
    async with app.worker():
        end = await http.post("/v1/jobs", json=PAGES, headers={"prefer": "wait=60", "idempotency-key": "a"})
        failed = await http.post(
            "/v1/jobs?wait=60", json={"job": "mail", "args": {"to": "x"}, "attempts_max": 1}
        )

    told, own = later.json(), later.json()["id"]
    assert (later.status_code, later.headers["retry-after"]) == (202, "1")
    assert told["result_url"] == f"/v1/jobs/{own}/result?wait=60" and told["url"] == later.headers["location"]
    assert (plain.status_code, set(plain.json())) == (202, {"id", "job", "url"})
    assert "retry-after" not in plain.headers
    assert (end.status_code, end.headers["preference-applied"]) == (200, "wait=60")
    assert end.headers["idempotent-replayed"] == "true" and end.headers["location"] == told["url"]
    assert (end.json()["id"], end.json()["state"], end.json()["result"]) == (own, "succeeded", RESULT)
    assert failed.status_code == 200 and failed.json()["state"] == "failed"
    assert failed.json()["error"]["message"] == "nobody is called x" and "result" not in failed.json()
    assert len(await app.client.alist_jobs()) == 3


async def test_who_may_not_read_is_told_no_result(app: App, http: httpx.AsyncClient, door: Door) -> None:
    door.only(Scope.SUBMIT)
    preferred = await http.post("/v1/jobs", json=PAGES, headers={"prefer": "wait=0.01"})
    asked = await http.post("/v1/jobs?wait=1", json=PAGES)

    assert (preferred.status_code, "preference-applied" in preferred.headers) == (202, False)
    assert (asked.status_code, asked.json()["code"]) == (403, "FR-871")
    assert len(await app.client.alist_jobs()) == 1


async def test_who_waits_at_a_submit_takes_no_seat_of_those_who_do_not(
    app: App, gateway: Gateway, http: httpx.AsyncClient
) -> None:
    async with asyncio.TaskGroup() as group:
        waits = group.create_task(http.post("/v1/jobs?wait=60", json=PAGES))
        async with asyncio.timeout(PATIENCE_S):
            while not await app.client.alist_jobs():
                await asyncio.sleep(0)
        taken = (gateway._house.waiting_room.taken, gateway._house.room.taken)
        gateway.leave()
    assert (taken, waits.result().status_code) == ((1, 0), 202)
