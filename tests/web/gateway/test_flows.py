"""Flows over HTTP: stored whole and once, looked at page by page, cancelled and revived, and nobody else's."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from fencerow import App
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door

WAIT_S = 60  # the longest that a gateway lets anybody wait
NOBODY = "01900000-0000-7000-8000-000000000000"
A = {"name": "a", "job": "pages", "args": {"path": "a.pdf"}, "stage": True}
B = {"name": "b", "job": "pages", "args": {"path": "b.pdf"}, "needs": ["a"], "stage": True}
JOIN = {"name": "join", "job": "pages", "args": {"path": "c.pdf"}, "needs": ["a"], "after": ["b"]}
REPORT = {"name": "report", "jobs": [JOIN, A, B], "on_done": [{"job": "pages", "args": {"path": "done"}}]}


async def submitted(http: httpx.AsyncClient, document: Any = REPORT, **headers: str) -> str:
    answer = await http.post("/v1/flows", json=document, headers=headers)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["url"])


async def test_a_flow_is_stored_once_and_told_as_it_goes(app: App, http: httpx.AsyncClient) -> None:
    first = await http.post("/v1/flows", json=REPORT, headers={"Idempotency-Key": "monday"})
    again = await http.post("/v1/flows", json={**REPORT, "key": "monday"})
    other = await http.post("/v1/flows", json={**REPORT, "jobs": [A], "key": "monday"})
    assert (first.json(), first.headers["location"]) == (again.json(), first.json()["url"])
    assert [each.headers["fencerow-answer"] for each in (first, again)] == ["inserted", "existing"]
    assert (other.status_code, other.json()["code"]) == (409, "FR-986")
    address = first.json()["url"]

    begun = (await http.get(address)).json()
    assert (begun["state"], begun["submitted_by"], begun["counts"]["waiting"]) == ("running", "tests", 2)
    assert [(one["outcome"], one["made_at"]) for one in begun["callbacks"]] == [("done", None)]
    assert (await http.get(f"{address}/result")).json()["code"] == "FR-307"
    page = await http.get(f"{address}/jobs", params={"limit": 2})
    rest = await http.get(page.headers["link"].partition(">")[0].removeprefix("<"))
    told = [*page.json()["jobs"], *rest.json()["jobs"]]
    assert [(one["name"], one["needs"], one["after"]) for one in told] == [
        ("a", [], []), ("b", ["a"], []), ("join", ["a"], ["b"]),
    ]  # fmt: skip
    assert rest.json()["next"] is None

    async with app.worker():
        ended = (await http.get(address, params={"wait": WAIT_S})).json()
        result = await http.get(f"{address}/result", params={"wait_for": "b"})
    assert (ended["state"], ended["counts"]["succeeded"]) == ("succeeded", 3)
    assert result.json() == {"path": "b.pdf", "pages": 3}
    nothing = await http.delete(address)
    assert (nothing.status_code, nothing.json()["code"]) == (409, "FR-987")


async def test_a_result_is_waited_for_as_long_as_asked(app: App, http: httpx.AsyncClient) -> None:
    """The stage before it is answered when the wait is over; and who waits longer is answered when it has ended."""
    address = await submitted(http, {"name": "two", "jobs": [A, {**B, "delay_s": 3600}]})
    async with app.worker():
        early = await http.get(f"{address}/result", params={"wait": WAIT_S})
        late = await http.get(f"{address}/result", params={"wait_for": "b", "wait": "0.2"})
        waiting = asyncio.ensure_future(
            http.get(f"{address}/result", params={"wait_for": "b", "wait": WAIT_S})
        )
        jobs = (await http.get(f"{address}/jobs")).json()["jobs"]
        await http.post(f"/v1/jobs/{jobs[1]['id']}/run-now")
        second = await waiting
    assert [each.json()["path"] for each in (early, late, second)] == ["a.pdf", "a.pdf", "b.pdf"]
    missing = await http.get(f"{address}/result", params={"wait_for": "nobody"})
    assert (missing.status_code, missing.json()["code"]) == (404, "FR-982")


async def test_a_flow_is_cancelled_and_revived_in_the_name_of_the_token(
    app: App, http: httpx.AsyncClient
) -> None:
    address = await submitted(http)
    cancelled = await http.delete(address)
    assert (cancelled.status_code, cancelled.json()["cancelled"], cancelled.json()["asked"]) == (200, 3, 0)
    async with app.worker():
        assert (await http.get(address, params={"wait": WAIT_S})).json()["state"] == "cancelled"
        none = await http.get(f"{address}/result")
        assert (none.status_code, none.json()["code"]) == (409, "FR-988")
        revived = await http.post(f"{address}/revive")
        assert (revived.status_code, revived.json()["left"]) == (200, 0)
        assert (await http.get(address, params={"wait": WAIT_S})).json()["state"] == "succeeded"
    noted = [
        (each.person, each.via, each.verb)
        for each in await app.client.audit.aentries()
        if each.kind == "flow"
    ]
    assert sorted(noted) == [("tests", "http", "cancelled"), ("tests", "http", "revived")]


async def test_flows_are_listed_the_newest_first_and_by_name(http: httpx.AsyncClient) -> None:
    made = [await submitted(http, {"name": name, "jobs": [A]}) for name in ("a", "b", "a")]
    await http.delete(made[0])

    async def listed(**query: Any) -> list[str]:
        found: list[str] = []
        address: str | None = "/v1/flows"
        while address:
            answer = await http.get(address, params=query or None)
            found += [f"/v1/flows/{each['id']}" for each in answer.json()["flows"]]
            link = answer.headers.get("link", "")
            address, query = link.partition(">")[0].removeprefix("<") or None, {}
        return found

    assert await listed(limit=1) == made[::-1]
    assert await listed(name="a", limit=1) == [made[2], made[0]]
    assert made[1] in await listed(live="true")
    for cursor in ("x", "!", "MTIz"):
        answer = await http.get("/v1/flows", params={"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (422, "FR-201")


async def test_a_list_for_some_queues_goes_on_from_page_to_page_and_follows_a_job_that_moves(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    mail = {"name": "mail", "job": "mail", "args": {"to": "ada"}}
    made = [
        await submitted(http, {"name": "f", "jobs": jobs})
        for jobs in ([A], [mail], [A, mail], [{**A, "queue": "night"}], [A], [A, {**mail, "queue": "night"}])
    ]

    async def listed(**query: Any) -> list[int]:
        found: list[int] = []
        cursor: dict[str, Any] = {}
        while True:
            page = (await http.get("/v1/flows", params={**query, **cursor})).json()
            found += [made.index(f"/v1/flows/{each['id']}") for each in page["flows"]]
            if page["next"] is None:
                return found
            cursor = {"cursor": page["next"]}

    door.only(Scope.READ, queues={"documents", "letters"})
    assert await listed(limit=1) == await listed() == [4, 2, 1, 0]
    door.only(Scope.READ, queues={"letters"})
    assert await listed() == [1]
    door.only(Scope.READ, queues={"a", "documents"})
    assert await listed(live="true", name="f") == [4, 0]
    (job,) = (await http.get(f"{made[4]}/jobs")).json()["jobs"]
    await app.client.achange(job["id"], queue="night")
    assert await listed() == [0] and (await http.get(made[4])).status_code == 404
    door.only(Scope.READ, queues={"night"})
    assert await listed() == [3], "it is not theirs to whose queue one of its jobs came"


CALL = {"job": "pages", "args": {"path": "a"}}


@pytest.mark.parametrize(
    ("document", "code", "where"),
    [
        ({"jobs": []}, "FR-201", "$.jobs"),
        ({"jobs": [{**A, "needs": ["a"]}]}, "FR-981", ""),
        ({"jobs": [{**A, "needs": ["b"]}]}, "FR-982", ""),
        ({"jobs": [B, A, A]}, "FR-983", "$.jobs[2]"),
        ({"jobs": [{**A, "key": "k"}]}, "FR-980", "$.jobs[0]"),
        ({"jobs": [A, {**B, "after": ["a"]}]}, "FR-980", "$.jobs[1]"),
        ({"jobs": [{**A, "job": "nobody"}]}, "FR-202", "$.jobs[0]"),
        ({"jobs": [{**A, "args": {"path": 1}}]}, "FR-203", "$.jobs[0].args.path"),
        ({"jobs": [{**A, "colour": 1}]}, "FR-201", "$.jobs[0]"),
        ({"jobs": [{**A, "delay_s": 10, "expires_s": 5}]}, "FR-201", "$.jobs[0]"),
        ({"jobs": [A], "on_done": [CALL, {**CALL, "id": NOBODY}]}, "FR-980", "$.on_done[1]"),
        ({"jobs": [A], "on_failed": [CALL] * 101}, "FR-201", "$.on_failed"),
        ({"jobs": [{**A, "limits": ["nobody"]}]}, "FR-791", ""),
    ],
)
async def test_a_flow_that_cannot_run_is_refused_whole(
    app: App, http: httpx.AsyncClient, document: Any, code: str, where: str
) -> None:
    answer = await http.post("/v1/flows", json={"name": "f", **document})
    assert (answer.json()["code"], answer.json().get("where", "")) == (code, where), answer.text
    assert answer.status_code == 422
    assert await app.flows.aknown() == [] and await app.client.alist_jobs() == []


async def test_a_token_of_some_queues_sees_its_own_flows_alone(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    mail = {"name": "mail", "job": "mail", "args": {"to": "ada"}}
    foreign = [
        await submitted(http, {"name": "f", "jobs": [A, mail], "key": "k"}),
        await submitted(
            http, {"name": "f", "jobs": [A], "on_done": [{"job": "mail", "args": {"to": "ada"}}]}
        ),
        await submitted(http, {"name": "f", "jobs": [{**A, "queue": "letters"}]}),
    ]
    door.only(Scope.SUBMIT, Scope.OPERATE, queues={"documents"})
    own = await submitted(http, {"name": "f", "jobs": [A], "key": "k"})
    assert own not in foreign, "a key of others was found"
    assert (await http.get(own)).status_code == 200
    assert [each["id"] for each in (await http.get("/v1/flows")).json()["flows"]] == [own.rpartition("/")[2]]
    for jobs in ([mail], [{**A, "queue": "letters"}]):
        assert (await http.post("/v1/flows", json={"name": "f", "jobs": jobs})).status_code == 403
    for address in (*foreign, f"/v1/flows/{NOBODY}"):
        for verb, below in (
            ("GET", ""),
            ("GET", "/jobs"),
            ("GET", "/result"),
            ("DELETE", ""),
            ("POST", "/revive"),
        ):
            answer = await http.request(verb, f"{address}{below}")
            told = {**answer.json(), "request_id": ""}
            detail = f"there is no flow {address.rpartition('/')[2]}"
            assert (told["status"], told["code"]) == (404, "FR-985"), (verb, address)
            assert told["detail"].startswith(detail) and told.keys() == {
                "type", "title", "status", "detail", "code", "repeat", "fix", "request_id",
            }  # fmt: skip
    door.only(Scope.READ)
    assert {(await http.request(verb, own)).status_code for verb in ("DELETE", "GET")} == {403, 200}
    for address in ("/v1/flows", f"{own}/revive"):
        assert (await http.post(address, json=REPORT)).status_code == 403
    assert {each.state for each in await app.flows.aknown()} == {"running"}
