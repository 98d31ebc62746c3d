"""Who runs when, over HTTP: keys, limits, shares and mutexes are what the library says they are."""

from __future__ import annotations

import asyncio

import httpx

from fencerow import App
from fencerow.guards.mutex.mutexes import MutexTaker, make
from fencerow.limits.definition import Limit
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door


async def test_who_has_a_key_and_who_waits(app: App, http: httpx.AsyncClient) -> None:
    key = "tenant/1 7"
    ids = [(await app.asubmit_by_name("pages", {"path": "a"}, exclusive=key)).id for _ in range(2)]

    (listed,) = (await http.get("/v1/exclusive")).json()["keys"]
    shown = (await http.get("/v1/exclusive/show", params={"key": key, "waiting": 5})).json()

    assert (listed["key"], listed["at_once"], listed["waiting"] + listed["queued"]) == (key, 1, 2)
    named = [each["id"] for each in (*shown["holders"], *shown["waiting"])]
    assert (sorted(named), shown["key"]) == (sorted(ids), key)
    free = (await http.get("/v1/exclusive/show", params={"key": "nobody's"})).json()
    assert (free["holders"], free["waiting_count"]) == ([], 0)


async def test_a_limit_is_set_as_a_whole_in_the_name_of_the_token(app: App, http: httpx.AsyncClient) -> None:
    wanted = {
        "limit": "git.hub",
        "at_once": 2,
        "rate": {"count": 100, "per_s": 60, "burst": 3},
        "hours": ["mon-fri 09:00-17:00 Europe/Berlin"],
        "breaker": {"failures": 5, "stop_s": 30},
        "reason": "too many",
    }
    changes = [(await http.post("/v1/limits/set", json=wanted)).json()["changed"] for _ in "12"]
    shown = (await http.get("/v1/limits/show", params={"limit": "git.hub"})).json()

    assert changes == [True, False]
    (stored,) = await app.client.limits.aknown()
    assert (stored.set_by, stored.reason, stored.limit.at_once) == ("tests", "too many", 2)
    said = shown["definition"]
    assert {name: said[name] for name in ("limit", "at_once", "hours", "set_by", "reason")} == {
        "limit": "git.hub",
        "at_once": 2,
        "hours": wanted["hours"],
        "set_by": "tests",
        "reason": "too many",
    }
    assert (said["rate"]["burst"], said["breaker"]["within_s"], shown["holders"]) == (3, 60, [])
    await http.post("/v1/limits/set", json={"limit": "git.hub", "at_once": 5})
    (listed,) = (await http.get("/v1/limits")).json()["limits"]
    assert (listed["at_once"], listed["rate"], listed["reason"]) == (5, None, None)


async def test_a_limit_that_cannot_be_changes_nothing(app: App, http: httpx.AsyncClient) -> None:
    await app.client.limits.adefine(Limit("github", at_once=2))
    bad = ({"limit": "a b"}, {"limit": "github", "at_once": -1}, {"limit": "github", "rate": {"count": 0}})
    more = (
        {"limit": "github", "hours": ["always"]},
        {"limit": "github", "at_once": 10**9 + 1},
        {"at_once": 1},
    )
    nowhere = {"limit": "github", "hours": ["09:00-17:00 Nowhere/City"]}
    for body in (*bad, *more, nowhere):
        answer = await http.post("/v1/limits/set", json=body)
        assert (answer.status_code, answer.json()["repeat"]) == (422, "no"), body
    missing = await http.get("/v1/limits/show", params={"limit": "nobody"})
    assert (missing.status_code, missing.json()["code"]) == (404, "FR-791")
    assert [str(each.limit) for each in await app.client.limits.aknown()] == [str(Limit("github", at_once=2))]


async def test_a_share_has_the_weight_that_was_set(app: App, http: httpx.AsyncClient) -> None:
    await app.asubmit_by_name("pages", {"path": "a"}, share="tenant/7")
    weight = {"queue": "documents", "share": "tenant/7", "weight": 3}
    changed = (await http.post("/v1/shares/set", json=weight)).json()

    (listed,) = (await http.get("/v1/shares", params={"queue": "documents"})).json()["shares"]
    assert (changed, listed["queued"]) == ({**weight, "changed": True}, 1)
    assert (listed["weight"], listed["set_by"]) == (3, "tests")
    assert listed["first_due"] is not None
    assert (await http.post("/v1/shares/set", json={**weight, "weight": 0})).status_code == 422
    assert (await http.post("/v1/shares/set", json=weight)).json()["changed"] is False


async def test_mutexes_that_are_held(app: App, http: httpx.AsyncClient) -> None:
    await http.get("/v1/mutexes")  # the tables are made by the first who asks
    await app.engine.arun(make(MutexTaker("door/1", "0" * 32, 60.0, "here", 1, purpose="tests")))

    (listed,) = (await http.get("/v1/mutexes")).json()["mutexes"]

    assert (listed["key"], listed["state"], listed["purpose"], listed["job_id"]) == (
        "door/1",
        "held",
        "tests",
        None,
    )


async def test_what_spans_queues_needs_a_token_for_all(app: App, http: httpx.AsyncClient, door: Door) -> None:
    await app.asubmit_by_name("pages", {"path": "a"}, share="theirs")
    await app.asubmit_by_name("mail", {"to": "a"}, share="ours")
    door.only(Scope.READ, Scope.OPERATE, queues={"letters"})
    paths = (
        "exclusive",
        "exclusive/show?key=a",
        "limits",
        "limits/show?limit=a",
        "mutexes",
        "shares?queue=documents",
    )
    asked = [http.get(f"/v1/{path}") for path in paths]
    asked.append(http.post("/v1/limits/set", json={"limit": "github", "at_once": 1}))
    asked.append(http.post("/v1/shares/set", json={"queue": "documents", "share": "theirs", "weight": 2}))

    for answer in await asyncio.gather(*asked):
        assert (answer.status_code, answer.json()["code"]) == (403, "FR-871"), answer.request.url
    assert [each["share"] for each in (await http.get("/v1/shares")).json()["shares"]] == ["ours"]
    door.only(Scope.READ)
    assert (await http.post("/v1/limits/set", json={"limit": "github", "at_once": 1})).status_code == 403
    share = {"queue": "letters", "share": "ours", "weight": 2}
    assert (await http.post("/v1/shares/set", json=share)).status_code == 403
    assert await app.client.limits.aknown() == []
