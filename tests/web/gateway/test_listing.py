"""Lists of jobs over HTTP: pages that lose and double nothing, and show nobody what is not theirs."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fencerow import App
from fencerow.core.model.ids import new_id
from fencerow.web.gateway.listing import QUEUES_MAX, cursor_of
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door, ended


async def submitted(app: App, count: int, job: str = "pages", **options: Any) -> list[str]:
    """Ids of new jobs, in the order in which they were submitted."""
    args = {"path": "a.pdf"} if job == "pages" else {"to": "ada"}
    return [(await app.asubmit_by_name(job, args, **options)).id for _ in range(count)]


async def listed(http: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await http.get("/v1/jobs", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(page: dict[str, Any]) -> list[str]:
    return [job["id"] for job in page["jobs"]]


async def test_pages_show_each_job_once_while_jobs_end_and_come_between_them(
    app: App, http: httpx.AsyncClient
) -> None:
    all_ids = await submitted(app, 5)
    answer = await http.get("/v1/jobs", params={"limit": 2, "tag": [], "job": "pages"})
    seen = ids(answer.json())

    await ended(app, all_ids[0])
    await submitted(app, 1)
    while "link" in answer.headers:
        address, rel = answer.headers["link"].split("; ")
        assert (rel, answer.json()["next"] in address) == ('rel="next"', True)
        answer = await http.get(address.strip("<>"))
        seen += ids(answer.json())

    assert seen == sorted(all_ids, reverse=True)
    assert answer.json()["next"] is None
    assert answer.json()["jobs"][-1]["state"] == "succeeded"


async def test_each_filter_finds_what_carries_it(app: App, http: httpx.AsyncClient) -> None:
    await submitted(app, 1)
    (labelled,) = await submitted(
        app, 1, tags=["a", "b"], metadata={"customer": 17, "note": "x=[1"}, key="k", scope="s"
    )
    (cancelled,) = await submitted(app, 1, job="mail")
    await app.client.acancel(cancelled)

    carried: list[dict[str, Any]] = [
        {"tag": ["a", "b"]},
        {"metadata": ["customer=17", "note=x=[1"]},
        {"key": "k", "scope": "s"},
    ]
    for query in carried:
        assert ids(await listed(http, **query)) == [labelled], query
    for query in ({"state": ["cancelled", "failed"]}, {"queue": "letters"}, {"job": "mail"}):
        assert ids(await listed(http, **query)) == [cancelled], query
    assert ids(await listed(http, tag=["a", "c"])) == ids(await listed(http, metadata='customer="17"')) == []


async def test_no_list_shows_payloads(app: App, http: httpx.AsyncClient) -> None:
    (job_id,) = await submitted(app, 1, metadata={"secret": "parrot"})
    await ended(app, job_id)

    text = (await http.get("/v1/jobs")).text

    assert "a.pdf" not in text and "parrot" not in text


async def test_a_token_for_some_queues_turns_the_pages_of_these_alone(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    theirs = []
    for _ in range(3):
        await submitted(app, 1, queue="secret")
        theirs += [*await submitted(app, 1), *await submitted(app, 1, job="mail")]
    door.only(Scope.READ, queues={"letters", "documents"})

    seen, page = [], await listed(http, limit=4)
    seen += ids(page)
    page = await listed(http, limit=4, cursor=page["next"])
    seen += ids(page)

    assert (seen, page["next"]) == (sorted(theirs, reverse=True), None)
    foreign = await http.get("/v1/jobs", params={"queue": "secret"})
    assert (foreign.status_code, foreign.json()["code"]) == (403, "FR-871")
    door.only(Scope.READ, queues={str(number) for number in range(QUEUES_MAX + 1)})
    assert (await http.get("/v1/jobs")).status_code == 422
    assert ids(await listed(http, queue="3")) == []
    door.only(Scope.SUBMIT)
    assert (await http.get("/v1/jobs")).status_code == 403


GOOD = cursor_of(new_id())
BAD = (
    {"cursor": ""},
    {"cursor": GOOD[:-1]},
    {"cursor": f"{GOOD}=="},
    {"cursor": f"{GOOD[:4]}!{GOOD[4:]}"},
    {"cursor": new_id()},
    {"cursor": "é" * 22},
    {"limit": 0},
    {"limit": 201},
    {"limit": "ten"},
    {"limit": [1, 2]},
    {"state": "asleep"},
    {"queue": "a" * 1_001},
    {"tag": "x" * 1_001},
    {"tag": ["x"] * 21},
    {"metadata": "customer"},
    {"metadata": ["a=1", "a=2"]},
    {"key": "a\0b"},
    {"tag": "a\r\nx: b"},
    {"colour": "red"},
)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_what_no_page_can_mean_is_refused(http: httpx.AsyncClient) -> None:
    for query in BAD:
        answer = await http.get("/v1/jobs", params=query)
        assert answer.status_code == 422, (query, answer.text)


async def test_what_tries_to_be_sql_or_a_header_is_a_name_that_nothing_has(
    app: App, http: httpx.AsyncClient
) -> None:
    odd = '>; rel="last", <é' + "' OR 1=1 --"
    await submitted(app, 2, tags=[odd])
    for text in ("' OR 1=1 --", "%", "_", "null", "{}", "[" * 90, "\\u0000"):
        for name in ("queue", "job", "scope", "key", "tag"):
            assert ids(await listed(http, **{name: text})) == []
        assert ids(await listed(http, metadata=f"customer={text}")) == []

    answer = await http.get("/v1/jobs", params={"tag": odd, "limit": 1})
    assert (len(ids(answer.json())), answer.headers["link"].count("<")) == (1, 1)
    assert len(ids((await http.get(answer.headers["link"].split(">")[0][1:])).json())) == 1
