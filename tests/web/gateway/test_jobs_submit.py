"""What a submit over HTTP takes, refuses, and answers again: one job, a batch, a check that stores nothing."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from fencerow import App, Backoff
from fencerow.testing.clock import clock_of
from fencerow.web.gateway import submitting
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.given import Submit
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import ALL, Door, calling, ended

YEAR_S = 365 * 86400
PAGES = {"job": "pages", "args": {"path": "a.pdf"}}
EVERYTHING = {
    **PAGES,
    "queue": "night",
    "priority": 7,
    "run_at": "2100-01-01T00:00:00+01:00",
    "attempts_max": 9,
    "backoff": {"base_s": 1, "cap_s": 2.5},
    "timeout_s": 60,
    "retention_s": 3600,
    "scope": "invoices",
    "key_lifetime_s": 10 * YEAR_S,
    "exclusive": "account-7",
    "exclusive_at_once": 2,
    "strict": True,
    "share": "tenant-7",
    "handover": {"key": "channel-1", "receiver": "bot", "wait_for_earlier_s": 5},
    "tags": ["eu", "new"],
    "metadata": {"customer": 17},
}

REFUSED: list[tuple[Any, str, str]] = [
    ({**PAGES, "args": {"path": 3}}, "FR-203", "$.args.path"),
    ({**PAGES, "args": {}}, "FR-203", "$.args"),
    ({**PAGES, "args": {"path": "a", "zip": 1}}, "FR-203", "$.args"),
    ({"job": "pagse"}, "FR-202", ""),
    ({"job": ""}, "FR-201", "$.job"),
    ({**PAGES, "args": [1]}, "FR-201", "$.args"),
    ({**PAGES, "priority": 101}, "FR-201", ""),
    ({**PAGES, "priority": "5"}, "FR-201", "$.priority"),
    ({**PAGES, "priority": None}, "FR-201", "$.priority"),
    ({**PAGES, "run_at": "2100-01-01T00:00:00"}, "FR-201", "$.run_at"),
    ({**PAGES, "run_at": "2100-01-01T00:00:00Z", "delay_s": 1}, "FR-201", ""),
    ({**PAGES, "delay_s": 1e300}, "FR-201", ""),
    ({**PAGES, "delay_s": 60, "expires_s": 1}, "FR-201", ""),
    ({**PAGES, "scope": "s"}, "FR-201", ""),
    ({**PAGES, "key": "k" * 257}, "FR-201", ""),
    ({**PAGES, "id": "not-an-id"}, "FR-201", ""),
    ({**PAGES, "limits": ["nobody-made-it"]}, "FR-791", ""),
    ({**PAGES, "unique": {"by": False}}, "FR-201", ""),
    ({**PAGES, "unique": {"by": "k", "states": ["asleep"]}}, "FR-201", ""),
    ({**PAGES, "backoff": {"factor": 0}}, "FR-201", ""),
    ({**PAGES, "backoff": {"base": 1}}, "FR-201", "$.backoff"),
    ({**PAGES, "handover": True}, "FR-201", ""),
    ({**PAGES, "tags": ["a"] * 3 + [""]}, "FR-201", ""),
    ({**PAGES, "metadata": {"x": "y" * 20_000}}, "FR-204", ""),
    ({**PAGES, "connection": 1}, "FR-201", ""),
    ({"args": {}}, "FR-201", ""),
    ([], "FR-201", ""),
]


async def test_every_option_is_stored_as_the_library_stores_it(app: App, http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/jobs", json=EVERYTHING, headers={"idempotency-key": "17"})
    assert answer.status_code == 202, answer.text
    stored = await app.client.aget(answer.json()["id"])

    job = (await http.get(answer.headers["location"])).json()
    told = {name: job[name] for name in ("queue", "priority", "attempts_max", "exclusive", "share")}
    assert told == {name: EVERYTHING[name] for name in told}
    assert (job["state"], job["run_at"]) == ("waiting", "2099-12-31T23:00:00.000000Z")
    assert (job["scope"], job["key"], job["tags"], job["metadata"]) == (
        "invoices", "17", ["eu", "new"], {"customer": 17},
    )  # fmt: skip
    assert (stored.timeout_s, stored.retention_s, stored.strict, stored.exclusive_at_once) == (
        60,
        3600,
        True,
        2,
    )
    labelled = await http.post("/v1/jobs", json={**PAGES, "affinity": "gpu", "affinity_wait_s": 60})
    assert (await app.client.aget(labelled.json()["id"])).affinity_wait_s == 60
    assert Backoff(**stored.options) == Backoff(base_s=1, cap_s=2.5)


async def test_unique_submits_say_what_came_of_them(app: App, http: httpx.AsyncClient) -> None:
    async def submit(**more: Any) -> httpx.Response:
        return await http.post("/v1/jobs", json={**PAGES, **more})

    kept = [await submit(unique=True) for _ in range(2)]
    newest = {"by": "report", "on_conflict": "replace"}
    replaced = [await submit(unique=newest, args={"path": path}) for path in ("a", "b")]
    last = [await submit(unique="burst", debounce_s=30, debounce_max_s=60) for _ in range(2)]
    first = [await submit(unique="throttled", throttle_s=30) for _ in range(2)]

    for pair, said in ((kept, "existing"), (replaced, "replaced"), (last, "replaced"), (first, "existing")):
        assert [each.headers["fencerow-answer"] for each in pair] == ["inserted", said]
        assert pair[0].json() == pair[1].json()
    assert (await app.client.aget(replaced[0].json()["id"])).args == {"path": "b"}


async def test_the_answer_of_a_key_outlives_the_job(app: App, http: httpx.AsyncClient) -> None:
    key = {"idempotency-key": "invoice-17"}
    body = {**PAGES, "key_lifetime_s": 9 * YEAR_S}
    first = await http.post("/v1/jobs", json=body, headers=key)
    job_id = first.json()["id"]
    await ended(app, job_id)
    clock = clock_of(app.engine)
    clock.advance(8 * YEAR_S)
    await app.client.adelete(job_id)

    again = await http.post("/v1/jobs", json=body, headers=key)
    other = await http.post("/v1/jobs", json={**PAGES, "args": {"path": "b"}}, headers=key)
    clock.advance(2 * YEAR_S)
    anew = await http.post("/v1/jobs", json=body, headers=key)

    assert (again.status_code, again.content, again.headers["location"]) == (
        202, first.content, first.headers["location"],
    )  # fmt: skip
    assert again.headers["idempotent-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (409, "FR-206")
    assert anew.json()["id"] != job_id
    assert "idempotent-replayed" not in anew.headers


async def test_what_does_not_fit_is_refused_and_nothing_is_stored(app: App, http: httpx.AsyncClient) -> None:
    for body, code, where in REFUSED:
        answer = await http.post("/v1/jobs", json=body)
        told = answer.json()
        together = (await http.post("/v1/jobs:batch", json={"jobs": [PAGES, body]})).json()
        checked = (await http.post("/v1/jobs:validate", json=body)).json()

        assert answer.status_code == (413 if code == "FR-204" else 422), told
        assert (told["code"], told.get("where", ""), told["repeat"]) == (code, where, "no"), told
        assert together["code"] == code
        if code != "FR-791":  # that only the database knows
            assert together["where"].startswith("$.jobs[1]" if isinstance(body, dict) else "$.jobs"), together
            assert checked | {"request_id": ""} == told | {"request_id": ""}
    assert await app.client.alist_jobs() == []


WEIRD: list[Any] = [
    None, True, -1, 2**63 - 1, 1e308, "", "\n", "x" * 300, [None], ["a"] * 70, {"by": {}, "key": 1},
    "0001-01-01T00:00:00Z",
]  # fmt: skip


async def test_nothing_that_a_field_may_hold_is_a_fault_of_the_gateway(lite_app: App, door: Door) -> None:
    told = set()
    async with lite_app, calling(Gateway(lite_app, authorize=door)) as http:
        for name in Submit.__struct_fields__:
            door.grant = msgspec.structs.replace(ALL, id=name)  # each with the rate of one caller
            for value in WEIRD:
                body = {"key": "k", "unique": True, **PAGES, name: value}
                told.add((await http.post("/v1/jobs:validate", json=body)).status_code)

    assert told == {200, 422}


async def test_a_batch_is_stored_whole_or_not_and_answered_in_its_order(
    app: App, http: httpx.AsyncClient
) -> None:
    alone = (await http.post("/v1/jobs", json=PAGES, headers={"idempotency-key": "b"})).json()
    jobs = [{**PAGES, "key": key, "priority": priority} for priority, key in enumerate("abc")]
    answer = await http.post("/v1/jobs:batch", json={"jobs": [*jobs, {"job": "mail", "args": {"to": "x"}}]})
    told = answer.json()["jobs"]
    refused = await http.post(
        "/v1/jobs:batch", json={"jobs": [PAGES, {**PAGES, "key": "a", "args": {"path": "other"}}]}
    )

    assert [each["answer"] for each in told] == ["inserted", "existing", "inserted", "inserted"]
    assert {name: told[1][name] for name in alone} == alone
    found = [await app.client.aget(each["id"]) for each in told]
    assert [(each.name, each.priority) for each in found] == [
        ("pages", 0),
        ("pages", 0),
        ("pages", 2),
        ("mail", 0),
    ]
    assert (refused.status_code, refused.json()["code"]) == (409, "FR-206")
    assert len(await app.client.alist_jobs()) == 4


async def test_a_batch_has_bounds(http: httpx.AsyncClient) -> None:
    for jobs in ([], [PAGES] * 1001):
        answer = await http.post("/v1/jobs:batch", json={"jobs": jobs})
        assert (answer.status_code, answer.json()["where"]) == (422, "$.jobs")
    keyed = await http.post("/v1/jobs:batch", json={"jobs": [PAGES]}, headers={"idempotency-key": "k"})
    assert keyed.status_code == 422


async def test_a_batch_that_would_take_several_transactions_is_refused(
    app: App, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitting, "CHUNK_BYTES", 40)
    answer = await http.post("/v1/jobs:batch", json={"jobs": [PAGES] * 3})

    assert (answer.status_code, answer.json()["code"]) == (413, "FR-204")
    assert await app.client.alist_jobs() == []


async def test_a_check_says_what_would_be_stored(app: App, http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/jobs:validate", json=EVERYTHING, headers={"idempotency-key": "17"})

    told = {"job": "pages", "queue": "night", "priority": 7, "args_bytes": len('{"path":"a.pdf"}')}
    assert (answer.status_code, answer.json()) == (200, told)
    assert await app.client.alist_jobs() == []


async def test_header_and_body_name_one_key(http: httpx.AsyncClient) -> None:
    for key, status in (("k", 202), ("other", 422)):
        answer = await http.post("/v1/jobs", json={**PAGES, "key": "k"}, headers={"idempotency-key": key})
        assert answer.status_code == status


async def test_a_token_of_some_queues_submits_their_jobs_to_them(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    door.only(Scope.SUBMIT, queues={"letters", "night"})
    mail = {"job": "mail", "args": {"to": "x"}}
    tried = [
        mail,
        {**mail, "queue": "night"},
        {**mail, "queue": "documents"},
        {**PAGES, "queue": "letters"},
        {**mail, "scope": "pages", "key": "k"},
        {**mail, "unique": {"by": "k", "scope": "pages"}},
        {"job": "page"},
    ]
    answers = [await http.post("/v1/jobs", json=each) for each in tried]
    checks = [await http.post("/v1/jobs:validate", json=each) for each in tried]

    assert [each.status_code for each in answers] == [202, 202, 403, 403, 403, 403, 422]
    assert [each.status_code for each in checks] == [200, 200, 403, 403, 403, 403, 422]
    assert "pages" not in answers[-1].text
    assert "documents" not in answers[3].text
    assert len(await app.client.alist_jobs()) == 2


async def test_a_key_of_others_is_taken_and_nothing_more_is_told(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    mail = {"job": "mail", "args": {"to": "x"}, "key": "k"}
    theirs = await http.post("/v1/jobs", json={**mail, "queue": "documents"})
    door.only(Scope.SUBMIT, queues={"letters"})
    others = [{**mail}, {**mail, "args": {"to": "y"}}]
    answers = [await http.post("/v1/jobs", json=each) for each in others]
    answers += [
        await http.post("/v1/jobs:batch", json={"jobs": [{"job": "mail", "args": {"to": "z"}}, each]})
        for each in others
    ]

    for answer in answers:
        assert (answer.status_code, answer.json()["detail"]) == (
            409, "the key is taken; it belongs to a job that this token is not good for",
        )  # fmt: skip
        assert theirs.json()["id"] not in answer.text
    assert len(await app.client.alist_jobs()) == 1
